/* Getting threads to where work is: idle Ps, idle Ms, searchers. See wake.c. All on any M, in a
 * section; `_locked`: with sched.lock held. */
#ifndef WAKE_H
#define WAKE_H

#include "runtime.h"

void wakep(M *m);             /* calls a searcher, if a P is idle and nobody searches */
void wake_after_submit(M *m); /* the submit side of the pair: fence, then wakep() if needed */
void give_p(M *m, P *p, bool spinning); /* p to an idle M, a home that is next, or a new thread */
void give_late_p(M *m, int64_t now);    /* the monitor: gives away a P that no thread came for */
/* A G is in any queue, or a timer is due: a hint, true wherever the pairs of wake.c need it. */
bool work_anywhere(void);
void handoff_p(M *m, P *p); /* p leaves a thread that blocks: to another thread, or idle */

P *idle_p_get_locked(void);
void idle_p_put_locked(P *p);
P *idle_p_take(P *wanted); /* wanted if it is idle, else any; NULL: none is idle */

M *idle_m_get_locked(void); /* out of the pool; NULL: it is empty */
void m_acquire_p(M *m, P *p);
P *m_release_p(M *m);
bool idle_m_remove_locked(M *m);     /* out of the pool; false: it is not in it */
void m_stop(M *m);                   /* to the pool, until a waker brings a P. On g0, without a P */
void m_wake_with(M *n, P *p, G *gp); /* n waits on its note: brings p (and gp) */

void wake_for_timer(M *m, int64_t when); /* sees to it that a thread is awake by then */

#endif
