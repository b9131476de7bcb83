/*
 * Signals and cancels for a thread that is a goroutine (src/threads/signals.c, cancel.c,
 * src/sched/body.c), beside what that thread does at the moment:
 *
 *   a kernel thread puts it on: whoever has a signal nudges that one, or it finds `attention`;
 *   it begins a call that is a cancellation point: the canceller ends its wait, or the call finds
 *   `cancelled`;
 *   it enables cancellation: it finds `cancelled`, or the canceller finds it enabled.
 *
 * A signal for one that is about to park is ender.c's. What the kernel does with masks is left out;
 * a signal that the thread sends itself comes at once.
 */
#include "model.h"

#include "runtime.h"
#include "threads/signals.h"
#undef sys
#define sys model_sys
static long model_sys(long number, ...);
#include <sched/body.c>
#include <threads/cancel.c>
#include <threads/sigmask.c>
#include <threads/signals.c>

#ifndef SCENE
#define SCENE -1 /* all of them */
#endif

Threads threads;
static M waker, wearer;
static G g;
static Thread thread;
static BodySignals body;

Thread *thread_me(void) { return mc_running == &mc_threads[1] ? &thread : NULL; }

static bool lock_is_free(void *arg) { return sigs.lock == 0; }
static long model_sys(long number, ...) {
    if (number == SYS_sched_yield) {
        mc_looks_at(&sigs.lock);
        mc_wait(lock_is_free, NULL);
    }
    if (number == SYS_tgkill) thread.sig.noted = true; /* SIGCANCEL, on_cancel, libc */
    return 0;
}
long os_sys(long number, long a, long b, long c, long d, long e, long f) { return 0; }
int os_tgkill(int tid, int signo) { return 0; }

static bool no_child(void) { return false; }
static void interrupts(M *m, G *gp) {}
static void alone(G *gp, bool yes) {}
static const HookCore the_core = {
    .in_child = no_child,
    .body_interrupt = interrupts,
    .body_nudge = body_nudge,
    .body_alone = alone,
};
const HookCore *core = &the_core;

static int sets_state(int state, int *old) { return 0; }
static void tests(void) {}
Real real = {.pthread_setcancelstate = {.fn = sets_state}, .pthread_testcancel = {.fn = tests}};
void *libc_find(const char *name) { return NULL; }

/* The rest of the house, which nobody comes to here. */
Thread first_thread;
M *threads_lock(void) { return NULL; }
void threads_unlock(M *m) {}
Thread *thread_find(pthread_t id) { return NULL; }
void catcher_nudge(void) {}
void catcher_settle(uint64_t set) {}
void catcher_cancel(void) {}
bool timer_thread(const siginfo_t *info, Thread **t) { return false; }
bool timer_thread_locked(const siginfo_t *info, Thread **t) { return false; }
bool timer_overruns_locked(SignalQueue *q, const siginfo_t *info) { return false; }
void timer_taken(const siginfo_t *info) {}
void timers_end_locked(Thread *t) {}
long errno_failed(long r) { wrong("a call that fails"); }

/* ---- the two sides --------------------------------------------------------------------------- */

static void posts(void) {
    siginfo_t info = {.si_signo = SIGUSR1};
    post(&thread, &waker, &info);
}
static void puts_on(void) { wear_signals(&wearer, &body, ARCH_THREAD_POINTER()); }
static void looks(void) { MUST(load_rlx(&wearer.attn) & ATTN_SIGNAL); }

static void cancels(void) { cancel_other(&thread, &waker); }
static void begins_call(void) { thread_stay(true); }
static void call_is_over(void) { MUST(thread.sig.noted || thread.sig.cause == -EINTR); }

static void enables(void) { pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL); }
static void knows(void) { MUST(thread.sig.noted || body.attention != 0); }

static const struct Scene {
    const char *name;
    void (*wakes)(void), (*owner)(void), (*end)(void);
    bool shut;
} scenes[] = {
    {"a signal, and its thread is put on", posts, puts_on, looks, false},
    {"a cancel, and a cancellation point begins", cancels, begins_call, call_is_over, false},
    {"a cancel, and cancellation is enabled", cancels, enables, knows, true},
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(&sigs, 0, sizeof sigs);
    memset(&pool, 0, offsetof(__typeof__(pool), used));
    pool.used = 0;
    pool.free = NULL;
    threads.on = true;
    waker = wearer = (M){0};
    body = (BodySignals){.mask = 0};
    thread = (Thread){.gp = &g, .state = THREAD_LIVES, .sig = {.body = &body}};
    thread.sig.shut = scene->shut;
    mc_spawn(scene->wakes);
    mc_spawn(scene->owner);
}
static void model_end(void) { scene->end(); }
static uint64_t model_hash(uint64_t h) {
    ThreadSignals *s = &thread.sig;
    h = mix(mix(mix(mix(h, sigs.lock), s->cause), s->cancelled), s->shut);
    h = mix(mix(mix(mix(h, s->point), s->calls), s->noted), s->queue.set);
    return mix(mix(mix(mix(h, WORD(body.worn)), body.attention), wearer.attn), pool.used);
}
int main(void) {
    for (int i = 0; i < (int)count_of(scenes); i++) {
        scene = &scenes[i];
        if (SCENE >= 0 && i != SCENE) continue;
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
