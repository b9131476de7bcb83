/*
 * Reader-writer locks: libc's try functions, and queue.c. An unlock may let in several readers, so
 * it wakes everybody who waits.
 *
 * libc's unlock tells a writer's from a reader's by the thread noted in the lock. Only the writer
 * can unlock a lock that is held by a writer, so where a goroutine does, the note is put right
 * first: it may have come to another thread.
 */
#include "inside.h"

static int try_read(void *lock) { return libc(pthread_rwlock_tryrdlock)(lock); }
static int try_write(void *lock) { return libc(pthread_rwlock_trywrlock)(lock); }

HOOK int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    if (!runner(pthread_rwlock_rdlock)) return libc(pthread_rwlock_rdlock)(lock);
    int r = try_read(lock);
    if (likely(r != EBUSY)) return r;
    return here() ? wait_for(lock, try_read, WAIT_RWMUTEX_R, GORT_FOREVER) : libc(pthread_rwlock_rdlock)(lock);
}

HOOK int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    if (!runner(pthread_rwlock_wrlock)) return libc(pthread_rwlock_wrlock)(lock);
    int r = try_write(lock);
    if (likely(r != EBUSY)) return r;
    return here() ? wait_for(lock, try_write, WAIT_RWMUTEX_W, GORT_FOREVER) : libc(pthread_rwlock_wrlock)(lock);
}

static int timed(pthread_rwlock_t *lock, try_fn *attempt, int reason, clockid_t clock, const struct timespec *at) {
    if (!valid_clock(clock)) return EINVAL;
    int r = attempt(lock);
    if (r != EBUSY) return r;
    return valid_time(at) ? wait_for(lock, attempt, reason, deadline_of(clock, at)) : EINVAL;
}

HOOK int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict at) {
    if (!here()) return libc(pthread_rwlock_timedrdlock)(lock, at);
    return timed(lock, try_read, WAIT_RWMUTEX_R, CLOCK_REALTIME, at);
}

HOOK int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict at) {
    if (!here()) return libc(pthread_rwlock_clockrdlock)(lock, clock, at);
    return timed(lock, try_read, WAIT_RWMUTEX_R, clock, at);
}

HOOK int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict at) {
    if (!here()) return libc(pthread_rwlock_timedwrlock)(lock, at);
    return timed(lock, try_write, WAIT_RWMUTEX_W, CLOCK_REALTIME, at);
}

HOOK int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict at) {
    if (!here()) return libc(pthread_rwlock_clockwrlock)(lock, clock, at);
    return timed(lock, try_write, WAIT_RWMUTEX_W, clock, at);
}

HOOK int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    int writer = load_rlx(&lock->__data.__cur_writer);
    M *m = unlikely(writer != 0) ? here() : NULL;
    if (m && writer != m->tid) store_rlx(&lock->__data.__cur_writer, m->tid);
    int r = libc(pthread_rwlock_unlock)(lock);
    released(lock, true);
    return r;
}
