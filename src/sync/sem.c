/*
 * The counting semaphore, strictly first come first served.
 *
 * An acquire that finds a waiter queues up behind it even if there are permits enough, and a
 * release serves the head of the queue, never past it: small requests do not starve a large one.
 * The releaser hands permits over: a waiter taken off the queue owns its permits and need not look
 * again. A waiter that expires takes itself off and serves those behind it that fit now; one that
 * was served at the same moment has its permits and returns 0.
 *
 *   Invariant (lock held, on unlock): the queue is empty, or permits < amount of its head, where
 *   the head's deadline has not yet taken effect.
 *
 * A releaser does not touch the semaphore after it has made a waiter ready, so the waiter may free
 * it. Lock and unlock order a release before the acquires it serves.
 */
#include "sync/sema.h"

INLINE Lock *sem_lock(gort_sem *s) { return (Lock *)(void *)&s->lock_; }
INLINE SleepQ *sem_queue(gort_sem *s) { return (SleepQ *)(void *)&s->head_; }
_Static_assert(offsetof(gort_sem, tail_) == offsetof(gort_sem, head_) + sizeof(void *), "SleepQ");

/* Takes n permits if there is no waiter and they are there. Locked. */
static bool sem_take(gort_sem *sem, int64_t n) {
    if (sem_queue(sem)->first != NULL || sem->permits_ < n) return false;
    sem->permits_ -= n;
    return true;
}

/* Serves the queue from its head; the caller readies the list without the lock. Locked. */
static void sem_serve(gort_sem *sem, GList *list) {
    Sleeper *s;
    while ((s = sem_queue(sem)->first) != NULL && s->amount <= sem->permits_) {
        sleepq_remove(sem_queue(sem), s);
        if (!sleeper_claim(s)) continue;
        sem->permits_ -= s->amount;
        glist_push(list, s->gp);
    }
}

/* Takes s off. False: it was served, or its deadline was faster than a releaser. */
static bool sem_expire(gort_sem *sem, M *m, Sleeper *s) {
    GList list = {0};
    lock(sem_lock(sem), RANK_PRIM);
    bool queued = s->queued;
    if (queued) sleepq_remove(sem_queue(sem), s);
    sem_serve(sem, &list);
    unlock(sem_lock(sem));
    sleepers_ready(m, &list);
    return queued;
}

static void sem_abandon(Sleeper *s) {
    gort_sem *sem = s->object;
    M *m = enter();
    if (!sem_expire(sem, m, s) && s->taken) gort_sem_release(sem, s->amount);
    leave(m);
}

M *sem_acquire_in_section(M *m, gort_sem *sem, int64_t n, int64_t deadline, int *ended) {
    Sleeper s;
    *ended = 0;
    lock(sem_lock(sem), RANK_PRIM);
    if (sem_take(sem, n)) {
        unlock(sem_lock(sem));
    } else if ((*ended = wait_over(m, deadline)) != 0) {
        unlock(sem_lock(sem));
    } else {
        sleeper_init(&s, m, deadline, sem, sem_abandon);
        s.amount = n;
        sleepq_push(sem_queue(sem), &s);
        m = sleeper_park(m, &s, sem_lock(sem), WAIT_SEMA, deadline, ended);
        if (*ended) sem_expire(sem, m, &s);
    }
    if (*ended == 0) tsan_acquire(sem);
    return m;
}

static int acquire(gort_sem *sem, int64_t n, int64_t deadline) {
    int ended;
    if (in_forked_child()) return -ENOTCONN;
    if (n < 0) fatal("acquire of a negative number of permits");
    leave(sem_acquire_in_section(enter(), sem, n, deadline, &ended));
    return ended;
}

EXPORT void gort_sem_acquire(gort_sem *sem, int64_t n) { acquire(sem, n, GORT_FOREVER); }

EXPORT int gort_sem_acquire_until(gort_sem *sem, int64_t n, int64_t deadline) {
    return acquire(sem, n, call_limit(deadline));
}

EXPORT int gort_sem_try_acquire(gort_sem *sem, int64_t n) {
    if (in_forked_child()) return -ENOTCONN;
    if (n < 0) fatal("acquire of a negative number of permits");
    M *m = enter();
    lock(sem_lock(sem), RANK_PRIM);
    bool taken = sem_take(sem, n);
    unlock(sem_lock(sem));
    leave(m);
    if (taken) tsan_acquire(sem);
    return taken ? 0 : -EBUSY;
}

EXPORT void gort_sem_release(gort_sem *sem, int64_t n) {
    if (in_forked_child()) return;
    if (n < 0) fatal("release of a negative number of permits");
    GList list = {0};
    tsan_release(sem);
    M *m = enter();
    lock(sem_lock(sem), RANK_PRIM);
    if (sem->permits_ > INT64_MAX - n) fatal("semaphore overflows");
    sem->permits_ += n;
    sem_serve(sem, &list);
    unlock(sem_lock(sem));
    sleepers_ready(m, &list);
    leave(m);
}
