/* Gs that must run on a certain thread. See bound.c. */
#ifndef BOUND_H
#define BOUND_H

#include "runtime.h"

/* gp may go on at its home only, which waits for a P with gp. */
INLINE bool home_waits(G *gp) { return load_rlx(&gp->home) != NULL && !(gp->flags & GF_SOFT); }
/* With sched.lock, by p's holder: the next G that find.c would take for p is the first of the
 * global queue, and its home waits. */
bool home_is_next_locked(P *p);
/* With sched.lock: the first G of the global queue whose home waits for a P. NULL: none. */
G *home_take_waiting_locked(void);
/* Likewise, what has spilled included; and in p's own queue, where the others keep their order. By
 * p's holder, or p is on the maker's list: thieves may come by. */
G *home_take_any_locked(void);
G *home_take_queued_locked(P *p);
/* On g0 with a P: gives P and gp to gp's home, and m goes to the pool. */
void home_send(M *m, G *gp);
/* On g0 of an M whose locked G does not run now: hands the P off and waits until a sender brings a
 * P and the G. NULL: the runtime ends. */
G *home_wait(M *m);

#endif
