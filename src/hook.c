/*
 * The core's side of the hook: one table of what libgort-hook.so may call. It is the only name
 * that leaves the library without standing in gort.h.
 *
 * here() is the whole cost of a hooked call that does not block. A goroutine is outside of the
 * runtime while locks is 0 and its status is running: in a section, on g0, pinned, in the
 * preemption handler and inside a blocking call (announced or handed off) libc's own function is
 * the right one. On the alternate stack a signal handler of the program runs; parking there would
 * give the stack to the next signal.
 */
#include "hook.h"
#include "m.h"
#include "netpoll.h"
#include "retake.h"
#include "sim.h"
#include "soft.h"

static M *here(void) {
    M *m = getm();
    if (m == NULL || m->locks != 0 || m->plain || unlikely(forked_child)) return NULL;
    G *gp = m->curg;
    if (gp == NULL || load_rlx(&gp->status) != G_RUNNING) return NULL;
    return on_alt_stack(m, __builtin_frame_address(0)) ? NULL : m;
}

static G *current(void) {
    M *m = getm();
    return m == NULL || m->plain || forked_child ? NULL : m->curg;
}

static bool child(void) { return forked_child; }
static uint32_t life(void) { return load_acq(&sched.running) ? load_rlx(&sched.epoch) : 0; }
static M *enter_(void) { return enter(); }
static void leave_(M *m) { leave(m); }
static void lock_(Lock *l) { lock(l, RANK_PRIM); }
static void unlock_(Lock *l) { unlock(l); }

static bool retakes(void) { return retake_works && settings.retake != 1 && !sim_on; }

static void forget(int fd) {
    M *m = enter();
    desc_born(fd);
    leave(m);
}

static bool known(int fd) {
    Desc *d = desc_of(fd);
    return d && (load_rlx(&d->registered) || load_rlx(&d->q[DIR_READ].head) ||
                 load_rlx(&d->q[DIR_WRITE].head) || load_rlx(&d->threads.head) ||
                 load_rlx(&d->mode[DIR_READ]) != MODE_UNKNOWN || load_rlx(&d->mode[DIR_WRITE]) != MODE_UNKNOWN);
}

EXPORT const HookCore *gort_hook_core(void) {
    static const HookCore core = {
        .size = sizeof(HookCore),
        .size_m = sizeof(M),
        .size_g = sizeof(G),
        .here = here,
        .current = current,
        .child = child,
        .life = life,
        .enter = enter_,
        .leave = leave_,
        .lock = lock_,
        .unlock = unlock_,
        .park_until = park_until,
        .ready = ready,
        .stay_begin = soft_begin,
        .stay_end = soft_end,
        .retakes = retakes,
        .taken = &sched.taken,
        .looks = &sched.looks,
        .forget = forget,
        .known = known,
    };
    return &core;
}
