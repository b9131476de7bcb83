/* The mutex as the rwmutex, once and house locks use it. See mutex.c. */
#ifndef MUTEX_H
#define MUTEX_H

#include "sync/sema.h"

void mutex_start(void); /* at the start of a runtime, behind retake_start() */

#define MUTEX_LOCKED 1u /* see mutex.c */

/* One instruction sets LOCKED and tells whether it was set. In starvation mode it always is. */
INLINE bool mutex_seize(gort_mutex *mu) {
    return !(or_acq(&mu->state_, MUTEX_LOCKED) & MUTEX_LOCKED);
}

/* In a section of depth 1, which goes on with the mutex held. *r: 0, or -ETIMEDOUT. */
M *mutex_lock_in_section(M *m, gort_mutex *mu, int64_t deadline, int reason, int *r);
INLINE M *mutex_await_in_section(M *m, gort_mutex *mu) {
    int r;
    return mutex_lock_in_section(m, mu, GORT_FOREVER, WAIT_MUTEX, &r);
}

#endif
