/* Slots of Ps for which nobody need be woken. See slotwatch.c. */
#ifndef SLOTWATCH_H
#define SLOTWATCH_H

#include "runtime.h"

/* In P.watch: a submission to the slot calls no searcher, the monitor looks after it. Else 0: the
 * rule of wake.c. A mask, so that the submit side tests it and npidle in one. */
#define WATCHED UINT32_MAX
INLINE bool watched(P *p) { return load_rlx(&p->watch) != 0; }

/* p has nothing that a searcher has to come for. A hint for any thread, as runq_empty(). */
bool watch_nothing_in(P *p);

/* The monitor, once per look: after how long the next is due; GORT_FOREVER: no slot is watched. */
int64_t watch_slots(M *m, int64_t now);

#endif
