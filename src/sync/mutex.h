/*
 * The mutex as the rwmutex, once and house locks use it. See mutex.c.
 */
#ifndef MUTEX_H
#define MUTEX_H

#include "sync/sema.h"
#include "sched/sim.h"

/* The mutex was not free: waits. 0, -ETIMEDOUT. */
int mutex_lock_contended(gort_mutex *mu, int64_t deadline, int reason);

void mutex_start(void); /* at the start of a runtime, behind retake_start() */

#define MUTEX_LOCKED 1u /* see mutex.c */

/* One instruction sets LOCKED and tells whether it was set. In starvation mode it always is. */
INLINE int mutex_lock(gort_mutex *mu, int64_t deadline, int reason) {
    int r = 0;
    SIM_POINT();
    if (unlikely(or_acq(&mu->state_, MUTEX_LOCKED) & MUTEX_LOCKED))
        r = mutex_lock_contended(mu, deadline, reason);
    if (r == 0) tsan_acquire(mu);
    return r;
}

/* In a section of depth 1, which goes on with the mutex held. */
M *mutex_lock_in_section(M *m, gort_mutex *mu);

#endif
