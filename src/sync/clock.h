/* Deadlines where no runtime runs. See clock.c. */
#ifndef CLOCK_H
#define CLOCK_H

#include "sched/timer.h"

bool clock_prepare(void); /* once, before the first clock_add; false: no memory */
/* Arms t; timer_del takes it back. Its function is called on the clock's thread, with nothing held.
 * In a section. True: the caller calls clock_start() after the section. */
bool clock_add(Timer *t);
int clock_start(void);  /* 0, -EAGAIN */
bool clock_armed(void); /* a deadline is to come, and perhaps ends a wait (deadlock.c) */

#endif
