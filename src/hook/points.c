/*
 * Simulation (sched/sim.c): each hooked call of a thread that is a goroutine is a point at which
 * the seed may let others run first, also where the call itself opens no section of the core's.
 *
 * The test by which such a call begins (runner) finds SIMULATED in the word of its name, an odd
 * number like NO_TLS, and comes here. So calls outside of a simulation do not pay. Ordinary
 * goroutines have no points here: between two calls their variables are the thread's.
 */
#include "hook/hook_internal.h"

void points_tell(bool simulated) {
    known.simulated = simulated;
    if (known.tls == NO_TLS) return;
    long word = simulated ? SIMULATED : known.tls;
#define TELL(name) real.name.tls = word;
    EVERY_NAME(TELL)
#undef TELL
    /* nobody waits for these, which are called all the time */
    real.pthread_getspecific.tls = real.pthread_setspecific.tls = known.tls;
}

COLD M *runner_at_point(long at, bool may_switch) {
    if (at == NO_TLS) return NULL;
    if (may_switch && is_thread_to_libc() && maybe_here() && !hook_in_child()) core->sim_point();
    return runner_at(known.tls);
}
