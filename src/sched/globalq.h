/* The queue that all Ps share. See globalq.c. */
#ifndef GLOBALQ_H
#define GLOBALQ_H

#include "runtime.h"

/* A goroutine that has waited for so long comes before newer ones. */
#define OVERDUE (100 * GORT_MS)

/* A hint without the lock, the truth with it: Gs that wait here, the spilled ones among them. */
INLINE uint32_t global_count(void) { return load_rlx(&sched.global.count); }

void global_put(G *gp); /* to the tail */
void global_put_list(GList *list);
void global_put_list_head(GList *list);
void global_spill(GList *list); /* half a ring of Gs most of which have not run yet */

/* sched.lock: a share of it, `max` at most (0, or a batch is OVERDUE: half a ring). The first is
 * returned, the rest go into p's ring, as far as there is room. */
G *global_get_locked(P *p, uint32_t max);
/* sched.lock: half a ring of it joins the line behind p's ring. False: nothing, or no room. */
bool global_join_locked(P *p);
/* sched.lock: a preempted goroutine is about to be queued. So that it is not its own successor,
 * behind an empty FIFO what has spilled is next. (Only then, or the FIFO's turn would never
 * come.) */
INLINE void global_spilled_first_locked(void) {
    if (sched.global.head == NULL) sched.spilled.turn &= ~1U;
}
/* sched.lock: everything into the one queue, oldest first (sim.c draws from it). */
void global_flatten_locked(void);

/* sched.lock: takes gp off. False: it is not here. */
bool global_remove_locked(G *gp);

#endif
