/* POSIX semaphores: libc's sem_trywait, and waitqueue.c. */
#include "hook/hook_internal.h"

/* A try_fn: EBUSY where it would block. */
static int sem_try(void *sem) {
    if (libc(sem_trywait)(sem) == 0) return 0;
    int e = get_errno();
    return e == EAGAIN ? EBUSY : e;
}

/* glibc's third word: 0 in one for threads of a process. */
static int sem_unseen(const sem_t *sem) {
    return ((const int *)(const void *)sem)[2] != 0 ? WAIT_SHARED : 0;
}

static int sem_result(int r) { return (int)returned(-r); }

/* at: NULL: no end. */
static int sem_until(sem_t *sem, clockid_t clock, const struct timespec *at) {
    int err = get_errno(), r = sem_try(sem);
    if (r == EBUSY && at && !valid_time(at)) r = EINVAL;
    if (r == EBUSY) {
        int64_t deadline = at ? clock_deadline(clock, at) : GORT_FOREVER;
        r = waitq_acquire_once(sem, sem_try, WAIT_SEMA | sem_unseen(sem), deadline);
    }
    if (r == 0) set_errno(err);
    return sem_result(r);
}

HOOK int sem_wait(sem_t *sem) {
    if (!runner(sem_wait)) return libc(sem_wait)(sem);
    if (likely(load_rlx((uint32_t *)(void *)sem) != 0) && libc(sem_trywait)(sem) == 0) return 0;
    return here() ? keeping_frame(sem_until(sem, CLOCK_REALTIME, NULL)) : libc(sem_wait)(sem);
}

HOOK int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict at) {
    if (runner(sem_timedwait) && load_rlx((uint32_t *)(void *)sem) != 0 &&
        libc(sem_trywait)(sem) == 0)
        return 0;
    return here() ? keeping_frame(sem_until(sem, CLOCK_REALTIME, at))
                  : libc(sem_timedwait)(sem, at);
}

HOOK int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict at) {
    POINT(sem_clockwait);
    if (!here()) return libc(sem_clockwait)(sem, clock, at);
    if (!valid_clock(clock)) return sem_result(EINVAL);
    return keeping_frame(sem_until(sem, clock, at));
}

HOOK int sem_post(sem_t *sem) {
    POINT(sem_post);
    int r = libc(sem_post)(sem);
    /* as released(), but a signal handler may post */
    if (has_waiters(sem)) waitq_wake_anywhere(sem, 1, EVERY_BIT);
    return r;
}
