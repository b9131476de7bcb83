/*
 * POSIX semaphores: libc's sem_trywait, and waitqueue.c.
 */
#include "hook/hook_internal.h"

/* As try_fn: EBUSY where it would block. */
static int try_sem(void *sem) {
    if (libc(sem_trywait)(sem) == 0) return 0;
    int e = get_errno();
    return e == EAGAIN ? EBUSY : e;
}

static int done(int r) { return (int)returned(-r); }

HOOK int sem_wait(sem_t *sem) {
    if (!runner(sem_wait)) return libc(sem_wait)(sem);
    if (likely(load_rlx((uint32_t *)(void *)sem) != 0) && libc(sem_trywait)(sem) == 0) return 0;
    if (!here()) return libc(sem_wait)(sem);
    int err = get_errno();
    int r = try_sem(sem);
    if (r == EBUSY) r = wait_for(sem, try_sem, WAIT_SEMA, GORT_FOREVER);
    if (r == 0) set_errno(err);
    return done(r);
}

static int wait_until(sem_t *sem, clockid_t clock, const struct timespec *at) {
    int err = get_errno();
    int r = try_sem(sem);
    if (r == EBUSY)
        r = valid_time(at) ? wait_for(sem, try_sem, WAIT_SEMA, deadline_of(clock, at)) : EINVAL;
    if (r == 0) set_errno(err);
    return done(r);
}

HOOK int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict at) {
    if (runner(sem_timedwait) && load_rlx((uint32_t *)(void *)sem) != 0 &&
        libc(sem_trywait)(sem) == 0)
        return 0;
    if (!here()) return libc(sem_timedwait)(sem, at);
    return wait_until(sem, CLOCK_REALTIME, at);
}

HOOK int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict at) {
    if (!here()) return libc(sem_clockwait)(sem, clock, at);
    if (!valid_clock(clock)) return done(EINVAL);
    return wait_until(sem, clock, at);
}

HOOK int sem_post(sem_t *sem) {
    int r = libc(sem_post)(sem);
    /* as released(): it may be a signal handler that posts */
    if (has_waiters(sem)) queue_wake_anywhere(sem, 1, EVERY_BIT);
    return r;
}
