/* The mutex as the rwmutex, once and house locks use it. See mutex.c. */
#ifndef MUTEX_H
#define MUTEX_H

#include "sync/sema.h"
#include "sched/sim.h"

/* The mutex was not free: waits. 0, -ETIMEDOUT. */
int mutex_lock_contended(gort_mutex *mu, int64_t deadline, int reason);

void mutex_start(void); /* at the start of a runtime, behind retake_start() */

#define MUTEX_LOCKED 1u /* see mutex.c */

/* One instruction sets LOCKED and tells whether it was set. In starvation mode it always is. */
INLINE bool mutex_seize(gort_mutex *mu) {
    return !(or_acq(&mu->state_, MUTEX_LOCKED) & MUTEX_LOCKED);
}

INLINE int mutex_lock(gort_mutex *mu, int64_t deadline, int reason) {
    int r = 0;
    SIM_POINT();
    if (unlikely(!mutex_seize(mu))) r = mutex_lock_contended(mu, deadline, reason);
    if (r == 0) tsan_acquire(mu);
    return r;
}

/* In a section of depth 1, which goes on with the mutex held. *r: 0, or -ETIMEDOUT. */
M *mutex_lock_in_section(M *m, gort_mutex *mu, int64_t deadline, int reason, int *r);
INLINE M *mutex_await_in_section(M *m, gort_mutex *mu) {
    int r;
    return mutex_lock_in_section(m, mu, GORT_FOREVER, WAIT_MUTEX, &r);
}

#endif
