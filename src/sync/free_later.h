/*
 * Memory that is given back later. See time.c.
 */
#ifndef GARBAGE_H
#define GARBAGE_H

#include "sched/sched.h"

/*
 * Objects whose last user was a timer's function. That runs in the scheduler, where nothing may be
 * given back to malloc, so it leaves them here; the next caller that may comes by and does it.
 */
typedef struct Garbage {
    struct Garbage *next;
    void (*destroy)(struct Garbage *);
} Garbage;
void garbage_leave(Garbage *g); /* anywhere */
void garbage_collect_slow(void);
extern Garbage *garbage;
/* Outside of sections. */
INLINE void garbage_collect(void) {
    if (unlikely(load_rlx(&garbage) != NULL)) garbage_collect_slow();
}

#endif
