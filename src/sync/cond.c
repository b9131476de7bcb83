/*
 * The condition variable.
 *
 * A waiter must queue before it unlocks the mutex, or a signal sent right after that unlock would
 * find no waiter; and it can park only after it has unlocked. In between it is queued but runs: a
 * signal that finds it so marks it as notified instead of making it ready. So:
 *
 *   1  lock c; queue; unlock c
 *   2  unlock the mutex
 *   3  lock c; notified? then done. Else parked = true; park, which unlocks c
 *   4  lock the mutex
 *
 * A signal takes the head of the queue, the longest waiter. If that waiter's deadline has claimed
 * it first, the signal goes on to the next: a timeout never uses a signal up. There are no spurious
 * wake-ups: only a signal or a deadline ends step 3. A signaller does not touch the condition after
 * it has made a waiter ready, so the waiter may free it.
 *
 * c's lock guards everything. A signal first looks at the queue's head without it: it sees every
 * wait that happened before the signal, and may miss others. The program's mutex orders what it
 * guards; for programs that change the state without it, the lock orders signal before wake-up too.
 */
#include "sched/goexit.h"
#include "sync/mutex.h"

INLINE Lock *cond_lock(gort_cond *c) { return (Lock *)(void *)&c->lock_; }
INLINE SleepQ *cond_queue(gort_cond *c) { return (SleepQ *)(void *)&c->head_; }
_Static_assert(offsetof(gort_cond, tail_) == offsetof(gort_cond, head_) + sizeof(void *), "SleepQ");

/* Step 3. Returns with s off the queue; *ended: why, if not by a
 * signal. */
static M *await(M *m, gort_cond *c, Sleeper *s, int64_t deadline, int *ended) {
    lock(cond_lock(c), RANK_PRIM);
    if (!s->notified) {
        *ended = wait_over(m, deadline);
        if (*ended == 0) {
            if (s->timed) s->ticket = wait_begin(s->gp); /* unlocking may have opened others */
            s->parked = true;
            m = sleeper_park(m, s, cond_lock(c), WAIT_COND, deadline, ended);
            if (*ended == 0) return m;
            lock(cond_lock(c), RANK_PRIM);
        }
        if (s->queued) sleepq_remove(cond_queue(c), s);
    }
    unlock(cond_lock(c));
    return m;
}

/* The waiter was stopped for good before it had its mutex again. */
static void signal_unused(ExitHook *h) { gort_cond_signal(h->object); }

/* Still queued, s was not signalled. Else it has used up a signal, which goes to the next. */
static void cond_abandon(Sleeper *s) {
    gort_cond *c = s->object;
    lock(cond_lock(c), RANK_PRIM);
    bool queued = s->queued;
    if (queued) sleepq_remove(cond_queue(c), s);
    unlock(cond_lock(c));
    if (!queued && (s->notified || s->taken)) gort_cond_signal(c);
}

static int cond_wait(gort_cond *c, gort_mutex *mu, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    Sleeper s;
    int ended = 0;
    M *m = enter();
    sleeper_init(&s, m, deadline, c, cond_abandon);
    lock(cond_lock(c), RANK_PRIM);
    sleepq_push(cond_queue(c), &s);
    unlock(cond_lock(c));
    leave(m);
    gort_mutex_unlock(mu);
    m = await(enter(), c, &s, deadline, &ended);
    sleeper_over(&s);
    ExitHook hook = {.abandon = ended ? NULL : signal_unused, .object = c};
    exit_hook_push(s.gp, &hook);
    m = mutex_await_in_section(m, mu);
    exit_hook_pop(s.gp, &hook);
    leave(m);
    tsan_acquire(mu);
    if (ended == 0) tsan_acquire(c);
    return ended;
}

EXPORT void gort_cond_wait(gort_cond *c, gort_mutex *mu) { cond_wait(c, mu, GORT_FOREVER); }

EXPORT int gort_cond_wait_until(gort_cond *c, gort_mutex *mu, int64_t deadline) {
    return cond_wait(c, mu, call_limit(deadline));
}

/* Locked. Takes s, the head, off. True: signalled; false: its deadline was faster. */
static bool notify(gort_cond *c, Sleeper *s, GList *list) {
    sleepq_remove(cond_queue(c), s);
    if (!s->parked) return s->notified = true; /* it still runs, and sees the mark */
    if (!sleeper_claim(s)) return false;
    glist_push(list, s->gp);
    return true;
}

INLINE void cond_notify(gort_cond *c, bool all) {
    tsan_release(c);
    if (load_rlx(&c->head_) == NULL) { /* nobody waits */
        poll_attention();
        return;
    }
    if (in_forked_child()) return;
    GList list = {0};
    bool done = false;
    M *m = enter();
    lock(cond_lock(c), RANK_PRIM);
    for (Sleeper *s; !done && (s = cond_queue(c)->first) != NULL;)
        done = notify(c, s, &list) && !all;
    unlock(cond_lock(c));
    sleepers_ready(m, &list);
    leave(m);
}

EXPORT void gort_cond_signal(gort_cond *c) { cond_notify(c, false); }
EXPORT void gort_cond_broadcast(gort_cond *c) { cond_notify(c, true); }
