/*
 * Gs that must run on a certain thread. See home.c.
 */
#ifndef HOME_H
#define HOME_H

#include "runtime.h"

/* With sched.lock: the first G of the global queue whose home waits for a P. NULL: none. */
G *home_take_waiting_locked(void);
/* On g0 with a P: gives P and gp to gp's home, and m goes to the pool. */
void home_send(M *m, G *gp);
/* On g0: this M belongs to a locked G that does not run now. Hands its P off and waits for both;
 * NULL: the runtime ends. */
G *home_wait(M *m);

#endif
