/*
 * Condition variables.
 *
 * A goroutine does not wait in libc's: it queues (queue.c), unlocks the mutex, parks, and locks
 * the mutex again. A signal goes to a goroutine that waits, and to libc's waiters where there is
 * none; a broadcast to all. Queued before the mutex is unlocked, so a signal that follows a change
 * made under the mutex finds it.
 *
 * A process-shared one is libc's, on a handed-off thread: another process knows nothing of our
 * queue.
 */
#include "inside.h"

enum { COND_SHARED = 1, COND_MONOTONIC = 2 }; /* glibc, in __wrefs */

static bool shared(pthread_cond_t *c) { return load_rlx(&c->__data.__wrefs) & COND_SHARED; }

static clockid_t clock_of(pthread_cond_t *c) {
    return load_rlx(&c->__data.__wrefs) & COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static int wait_here(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t deadline) {
    Sleeper w;
    Stay s;
    stay(&s);
    sleeper_queue(&w, c, EVERY_BIT);
    int r = pthread_mutex_unlock(mutex);
    if (r != 0) {
        if (sleeper_cancel(&w)) queue_wake(c, false);
        stay_end(&s);
        return r;
    }
    bool hit = sleeper_wait(&w, WAIT_COND, deadline);
    r = pthread_mutex_lock(mutex);
    stay_end(&s);
    return r != 0 ? r : hit ? 0 : ETIMEDOUT;
}

typedef struct Shared {
    pthread_cond_t *c;
    pthread_mutex_t *mutex;
    const struct timespec *at;
} Shared;

static long shared_blocking(void *arg) {
    Shared *k = arg;
    if (k->at == NULL) return libc(pthread_cond_wait)(k->c, k->mutex);
    return libc(pthread_cond_timedwait)(k->c, k->mutex, k->at);
}

static int wait_shared(pthread_cond_t *c, pthread_mutex_t *mutex, const struct timespec *at) {
    Shared k = {c, mutex, at};
    Stay s;
    stay(&s);
    int r = (int)gort_blocking(shared_blocking, &k);
    stay_end(&s);
    return r;
}

HOOK int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex) {
    if (!here()) return libc(pthread_cond_wait)(c, mutex);
    return shared(c) ? wait_shared(c, mutex, NULL) : wait_here(c, mutex, GORT_FOREVER);
}

HOOK int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex,
                                const struct timespec *restrict at) {
    if (!here()) return libc(pthread_cond_timedwait)(c, mutex, at);
    if (!valid_time(at)) return EINVAL;
    return shared(c) ? wait_shared(c, mutex, at) : wait_here(c, mutex, deadline_of(clock_of(c), at));
}

HOOK int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict mutex, clockid_t clock,
                                const struct timespec *restrict at) {
    if (!here() || shared(c)) return libc(pthread_cond_clockwait)(c, mutex, clock, at);
    if (!valid_time(at) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return EINVAL;
    return wait_here(c, mutex, deadline_of(clock, at));
}

/* No release came before it: a full fence, against the waiter's. */
static bool somebody(pthread_cond_t *c) {
    fence_full();
    return load_rlx(&bucket_of(c)->count) != 0;
}

HOOK int pthread_cond_signal(pthread_cond_t *c) {
    if (somebody(c) && queue_wake(c, false)) return 0;
    return libc(pthread_cond_signal)(c);
}

HOOK int pthread_cond_broadcast(pthread_cond_t *c) {
    if (somebody(c)) queue_wake(c, true);
    return libc(pthread_cond_broadcast)(c);
}
