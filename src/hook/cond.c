/* Condition variables. A goroutine does not wait in libc's: it queues itself (waitqueue.c), unlocks
 * the mutex, parks, and locks the mutex again. It is queued before the unlock, so a signal that
 * follows a change made under the mutex finds it. A signal wakes one goroutine, or if none waits
 * one of libc's waiters; a broadcast all. A process-shared one is libc's, in gort_blocking. What
 * libc's wait unlocks no hook sees, so goroutines that wait for the mutex look at intervals. */
#include "hook/hook_internal.h"

enum { COND_SHARED = 1, COND_MONOTONIC = 2 }; /* glibc, in __wrefs */

/* As in libc, a thread that waits here uses the mutex meanwhile, and pthread_mutex_destroy says
 * EBUSY. Not so an ordinary goroutine, whose runtime may end while it waits; nor one that does not
 * hold the mutex. */
static bool cond_uses(pthread_mutex_t *mutex) {
    if (!is_thread_to_libc()) return false;
    int owner = load_rlx(&mutex->__data.__owner);
    if (load_rlx(&mutex->__data.__kind) != 0 && owner != core->body_tid(runner_g())) return false;
    mutex->__data.__nusers++;
    return true;
}

/* uses: the wait counts as a user of the mutex all the time. */
static int lock_again(pthread_mutex_t *mutex, bool uses) {
    int r = pthread_mutex_lock(mutex);
    if (uses && (r == 0 || r == EOWNERDEAD)) mutex->__data.__nusers--;
    return r;
}
static void lock_used(void *mutex) { lock_again(mutex, true); }
static void lock_unused(void *mutex) { lock_again(mutex, false); }

/* Handlers run. One that waits itself may be cancelled there: the cleanup handlers then find the
 * mutex locked, as in libc's wait. */
static NOINLINE void attend_unlocked(pthread_mutex_t *mutex, bool uses) {
    pthread_cleanup_push(uses ? lock_used : lock_unused, mutex);
    attend();
    pthread_cleanup_pop(0);
}

static int cond_park(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t deadline) {
    WaitEntry w;
    bool mine = stay_with(true);
    waitq_join(&w, c, EVERY_BIT);
    bool uses = cond_uses(mutex);
    int r = pthread_mutex_unlock(mutex);
    if (r != 0) {
        if (waitq_leave(&w)) waitq_wake(c, false);
        stay_end(mine);
        return r;
    }
    mine |= stay(); /* the mutex may have bound the goroutine until now */
    bool hit = waitq_wait(&w, WAIT_COND, deadline);
    bool ended = !hit && interrupted(); /* spurious, after a handler has run; or cancelled */
    if (ended) attend_unlocked(mutex, uses);
    r = lock_again(mutex, uses);
    stay_over(mine, ended ? -ECANCELED : 0, false); /* not EINTR: it is not made again */
    return r != 0 ? r : hit || ended || deadline > gort_now() ? 0 : ETIMEDOUT;
}

typedef struct CondWait {
    pthread_cond_t *c;
    pthread_mutex_t *mutex;
    const struct timespec *at; /* NULL: no end */
    bool clocked;              /* by this clock; else by the condition's */
    clockid_t clock;
} CondWait;

static int cond_libc(const CondWait *k) {
    if (k->at == NULL) return libc(pthread_cond_wait)(k->c, k->mutex);
    if (!k->clocked) return libc(pthread_cond_timedwait)(k->c, k->mutex, k->at);
    return libc(pthread_cond_clockwait)(k->c, k->mutex, k->clock, k->at);
}

/* libc unlocks the mutex and locks it again as the thread, so the thread borrows it. */
static long cond_in_libc(void *arg) {
    CondWait *k = arg;
    M *m = runner_at(known.tls);
    if (m == NULL) return cond_libc(k);
    int me = owner_mark();
    mutex_lend(k->mutex, me, m->tid);
    int r = cond_libc(k);
    released(k->mutex, false); /* it was unlocked for a while */
    mutex_lend(k->mutex, m->tid, me);
    return r;
}

INLINE int cond_hooked(CondWait k) {
    POINT(pthread_cond_wait);
    bool by_allocator = called_by_allocator(); /* whose mutex nobody waits for here */
    if (!here()) {
        if (!by_allocator) waitq_sees_less();
        return (int)cond_in_libc(&k);
    }
    unsigned flags = load_rlx(&k.c->__data.__wrefs);
    clockid_t own = flags & COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    clockid_t clock = k.clocked ? k.clock : own;
    if (k.at && (!valid_time(k.at) || !valid_clock(clock))) return EINVAL;
    if (flags & COND_SHARED) {
        waitq_sees_less();
        return (int)stay_blocking(cond_in_libc, &k);
    }
    return keeping_frame(
        cond_park(k.c, k.mutex, k.at ? clock_deadline(clock, k.at) : GORT_FOREVER));
}

HOOK int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex) {
    return cond_hooked((CondWait){c, mutex, NULL, false, 0});
}

HOOK int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex,
                                const struct timespec *restrict at) {
    return cond_hooked((CondWait){c, mutex, at, false, 0});
}

HOOK int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex,
                                clockid_t clock, const struct timespec *restrict at) {
    return cond_hooked((CondWait){c, mutex, at, true, clock});
}

/* No fence: a waiter queues itself with the mutex held, and a signaller that has changed what it
 * waits for has held the mutex since. */
static bool cond_has_waiters(pthread_cond_t *c) { return waitq_has(c); }

HOOK int pthread_cond_signal(pthread_cond_t *c) {
    POINT(pthread_cond_signal);
    if (cond_has_waiters(c) && waitq_wake(c, false)) return 0;
    return libc(pthread_cond_signal)(c);
}

HOOK int pthread_cond_broadcast(pthread_cond_t *c) {
    POINT(pthread_cond_broadcast);
    if (cond_has_waiters(c)) waitq_wake(c, true);
    return libc(pthread_cond_broadcast)(c);
}
