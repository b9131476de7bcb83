/*
 * The mutex as the rwmutex uses it: with a wait reason of its own. See mutex.c.
 */
#ifndef MUTEX_H
#define MUTEX_H

#include "sema.h"
#include "sim.h"

/* The mutex was not free: 0, -ETIMEDOUT. May park. */
int mutex_lock_contended(gort_mutex *mu, int64_t deadline, int reason);

#define MUTEX_LOCKED 1u /* see mutex.c */

/* One CAS and no load before it; a second one where the mutex is free but somebody sleeps. */
INLINE int mutex_lock(gort_mutex *mu, int64_t deadline, int reason) {
    uint32_t old = 0;
    int r = 0;
    SIM_POINT();
    if (unlikely(!cas_acq(&mu->state_, &old, MUTEX_LOCKED)) &&
        ((old & MUTEX_LOCKED) || !cas_acq(&mu->state_, &old, old | MUTEX_LOCKED)))
        r = mutex_lock_contended(mu, deadline, reason);
    if (r == 0) tsan_acquire(mu);
    return r;
}

#endif
