/* Gs that must run on a certain thread. See bound.c. */
#ifndef BOUND_H
#define BOUND_H

#include "runtime.h"

/* gp may go on at its home only, which waits for a P with gp. */
INLINE bool home_waits(G *gp) { return load_rlx(&gp->home) != NULL && !(gp->flags & GF_SOFT); }
/* With sched.lock, by p's holder: p's next G is the global queue's first, and its home waits. */
bool home_is_next_locked(P *p);
/* With sched.lock: the first G of the global queue whose home waits for a P. NULL: none. */
G *home_take_waiting_locked(void);
/* Likewise, what has spilled too; and in p's queue: by p's holder, or p is at the maker's. */
G *home_take_any_locked(void);
G *home_take_queued_locked(P *p);
/* On g0 with a P: gives P and gp to gp's home, and m goes to the pool. */
void home_send(M *m, G *gp);
/* On g0, m's locked G does not run: hands the P off, waits for a P and the G. NULL: the end. */
G *home_wait(M *m);

#endif
