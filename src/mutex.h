/*
 * The mutex as the rwmutex uses it: with a wait reason of its own. See mutex.c.
 */
#ifndef MUTEX_H
#define MUTEX_H

#include "sema.h"

/* The mutex was not free: 0, -ETIMEDOUT. May park. */
int mutex_lock_contended(gort_mutex *mu, int64_t deadline, int reason);

/* One CAS and no load before it; see mutex.c for the 1. */
INLINE int mutex_lock(gort_mutex *mu, int64_t deadline, int reason) {
    uint32_t old = 0;
    int r = 0;
    if (unlikely(!cas_acq(&mu->state_, &old, 1))) r = mutex_lock_contended(mu, deadline, reason);
    if (r == 0) tsan_acquire(mu);
    return r;
}

#endif
