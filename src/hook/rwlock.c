/*
 * Reader-writer locks: libc's try functions, and waitqueue.c. An unlock wakes all: many may read.
 *
 * libc notes the writer's thread in the lock: it tells a writer's unlock from a reader's by it, and
 * refuses the writer a second lock (EDEADLK). A goroutine that writes notes its mark instead
 * (mutex.c), and for the unlock the number of the thread that it is on by then. To one that is a
 * thread to libc, libc itself says EDEADLK, where a call with a deadline would wait.
 *
 * Where writers are preferred, libc counts the threads that wait to write. Goroutines do not wait
 * there: one announces itself in the queue for the whole of its wait, and readers look for it.
 */
#include "hook/hook_internal.h"

static bool rwlock_is_writer(pthread_rwlock_t *lock, int me) {
    return me != 0 && load_rlx(&lock->__data.__cur_writer) == me;
}

static bool rwlock_prefers_writers(pthread_rwlock_t *lock) {
    return unlikely(lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}
static int rwlock_acquire(pthread_rwlock_t *lock, try_fn *attempt, int reason, int64_t deadline) {
    WaitEntry announced;
    bool writes = reason == WAIT_RWMUTEX_W;
    if (lock->__data.__shared) reason |= WAIT_SHARED;
    if (!writes || !rwlock_prefers_writers(lock))
        return waitq_acquire(lock, attempt, reason, deadline);
    waitq_join(&announced, lock, NO_BIT);
    int r = waitq_acquire(lock, attempt, reason, deadline);
    waitq_leave(&announced);
    if (r != 0) waitq_wake(lock, true); /* the readers behind it */
    return r;
}

/* EBUSY, or EDEADLK where the goroutine would wait for itself. */
static NOINLINE int rwlock_busy(pthread_rwlock_t *lock,
                                int (*timed)(pthread_rwlock_t *, const struct timespec *)) {
    struct timespec over = {0, 0};
    if (!is_thread_to_libc()) return rwlock_is_writer(lock, owner_mark()) ? EDEADLK : EBUSY;
    int r = timed(lock, &over);
    return r == ETIMEDOUT ? EBUSY : r;
}

/* For a caller that may wait. */
static int rwlock_try_read(void *object) {
    pthread_rwlock_t *lock = object;
    if (rwlock_prefers_writers(lock) && waitq_announced(lock)) return EBUSY;
    int r = libc(pthread_rwlock_tryrdlock)(lock);
    return unlikely(r == EBUSY) ? rwlock_busy(lock, libc(pthread_rwlock_timedrdlock)) : r;
}
static int rwlock_try_write(void *object) {
    pthread_rwlock_t *lock = object;
    int me = owner_mark(), r = libc(pthread_rwlock_trywrlock)(lock);
    if (likely(r == 0) && me) store_rlx(&lock->__data.__cur_writer, me);
    return unlikely(r == EBUSY) ? rwlock_busy(lock, libc(pthread_rwlock_timedwrlock)) : r;
}

HOOK int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    bool after_writer =
        rwlock_prefers_writers(lock) && runner(pthread_rwlock_tryrdlock) && waitq_announced(lock);
    return after_writer ? EBUSY : libc(pthread_rwlock_tryrdlock)(lock);
}

HOOK int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    if (!runner(pthread_rwlock_rdlock)) return libc(pthread_rwlock_rdlock)(lock);
    int r = rwlock_try_read(lock);
    if (likely(r != EBUSY)) return r;
    return here()
               ? keeping_frame(rwlock_acquire(lock, rwlock_try_read, WAIT_RWMUTEX_R, GORT_FOREVER))
               : libc(pthread_rwlock_rdlock)(lock);
}

/* What libc has said to a writer that cannot park: a thread, a G that is pinned or blocking. */
static int rwlock_written_in_libc(pthread_rwlock_t *lock, int r) {
    int me = r == 0 ? owner_mark() : 0;
    if (me) store_rlx(&lock->__data.__cur_writer, me);
    return r;
}

HOOK int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    if (!runner(pthread_rwlock_wrlock)) return libc(pthread_rwlock_wrlock)(lock);
    int r = rwlock_try_write(lock);
    if (likely(r != EBUSY)) return r;
    return here()
               ? keeping_frame(rwlock_acquire(lock, rwlock_try_write, WAIT_RWMUTEX_W, GORT_FOREVER))
               : rwlock_written_in_libc(lock, libc(pthread_rwlock_wrlock)(lock));
}

HOOK int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    POINT(pthread_rwlock_trywrlock);
    int r = rwlock_try_write(lock);
    return r == EDEADLK ? EBUSY : r;
}

static int rwlock_until(pthread_rwlock_t *lock, try_fn *attempt, int reason, clockid_t clock,
                        const struct timespec *at) {
    if (!valid_clock(clock)) return EINVAL;
    int r = attempt(lock);
    if (r != EBUSY) return r;
    return valid_time(at) ? rwlock_acquire(lock, attempt, reason, clock_deadline(clock, at))
                          : EINVAL;
}

HOOK int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
                                    const struct timespec *restrict at) {
    if (runner(pthread_rwlock_timedrdlock) && rwlock_try_read(lock) == 0) return 0;
    if (!here()) return libc(pthread_rwlock_timedrdlock)(lock, at);
    return keeping_frame(rwlock_until(lock, rwlock_try_read, WAIT_RWMUTEX_R, CLOCK_REALTIME, at));
}

HOOK int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                    const struct timespec *restrict at) {
    POINT(pthread_rwlock_clockrdlock);
    if (!here()) return libc(pthread_rwlock_clockrdlock)(lock, clock, at);
    return keeping_frame(rwlock_until(lock, rwlock_try_read, WAIT_RWMUTEX_R, clock, at));
}

HOOK int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
                                    const struct timespec *restrict at) {
    if (runner(pthread_rwlock_timedwrlock) && rwlock_try_write(lock) == 0) return 0;
    if (!here()) return rwlock_written_in_libc(lock, libc(pthread_rwlock_timedwrlock)(lock, at));
    return keeping_frame(rwlock_until(lock, rwlock_try_write, WAIT_RWMUTEX_W, CLOCK_REALTIME, at));
}

HOOK int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                    const struct timespec *restrict at) {
    POINT(pthread_rwlock_clockwrlock);
    if (!here())
        return rwlock_written_in_libc(lock, libc(pthread_rwlock_clockwrlock)(lock, clock, at));
    return keeping_frame(rwlock_until(lock, rwlock_try_write, WAIT_RWMUTEX_W, clock, at));
}

HOOK int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    POINT(pthread_rwlock_unlock);
    int writer = load_rlx(&lock->__data.__cur_writer);
    M *m = unlikely(writer != 0) ? runner_at(known.tls) : NULL;
    if (m && writer == owner_mark()) store_rlx(&lock->__data.__cur_writer, m->tid);
    int r = libc(pthread_rwlock_unlock)(lock);
    released(lock, true);
    return r;
}
