/* Deadlines where no runtime runs. See clock.c. */
#ifndef CLOCK_H
#define CLOCK_H

#include "sched/timer.h"

bool clock_prepare(void); /* once, before the first clock_add; false: no memory */
/* Arms t; timer_del takes it back. Its function is called on the clock's thread, with nothing held.
 * In a section. True: the caller calls clock_start() after the section. */
bool clock_add(Timer *t);
int clock_start(void); /* 0, -EAGAIN */
/* In a child that may use gort: the deadlines came along, and the thread did not. */
void clock_in_child(void);
extern bool clock_orphaned; /* atomic: so it is still */
/* Starts it; by gort_main and by calls that look at a context. Outside of sections. */
INLINE int clock_resume(void) { return unlikely(load_rlx(&clock_orphaned)) ? clock_start() : 0; }
bool clock_armed(void); /* a deadline is to come, and perhaps ends a wait (deadlock.c) */

#endif
