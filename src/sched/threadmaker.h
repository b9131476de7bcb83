/* The maker: the only thread that creates threads. See threadmaker.c. */
#ifndef THREADMAKER_H
#define THREADMAKER_H

#include "runtime.h"

#define SPARES 2 /* threads kept in the pool, so that a P need not wait until one is made */

int maker_start(void (*refused)(int error)); /* refused: not even one thread can be made */
void maker_stop(void);
void maker_pend_locked(P *p, bool spinning); /* p waits for a thread */
P *maker_take_pending_locked(bool *spinning);
P *maker_pending_locked(void);           /* the first P that waits, left there; NULL: none */
bool maker_has_pending(void);            /* a hint; exact with sched.lock */
P *maker_arrived_locked(bool *spinning); /* by a new thread: takes a P that waits, or NULL */
void maker_want_spare_locked(void);      /* one more thread for the pool */

#endif
