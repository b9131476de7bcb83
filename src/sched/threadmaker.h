/*
 * The maker: the only thread that creates threads. See threadmaker.c.
 */
#ifndef MAKER_H
#define MAKER_H

#include "runtime.h"

#define SPARES 2 /* threads kept in the pool: a P that needs one must not wait for its making */

int maker_start(void (*refused)(int error)); /* refused: not even one thread can be made */
void maker_stop(void);
void maker_pend_locked(P *p, bool spinning); /* p waits for a thread */
P *maker_take_pending_locked(bool *spinning);
P *maker_pending_locked(void); /* the first of these; NULL: none waits */
bool maker_has_pending(void);  /* a hint; with sched.lock the truth */
/* a new thread: is known to the collector; waits for its P, if any */
void maker_greet(M *m);
void maker_want_spare_locked(void); /* one more thread for the pool */

#endif
