#ifndef SYSMON_H
#define SYSMON_H

#include "runtime.h"

/* atomic: 0; 1: the monitor sleeps deeply and wants to be woken; 2: likewise, and its alarm is
 * set */
extern uint32_t sysmon_sleeps;
int sysmon_start(void);
void sysmon_stop(void);
void sysmon_wake(void); /* now */
/* in a signal handler, wherever: the monitor does it soon. Always the same work */
void sysmon_ask(void (*work)(M *m));
void sysmon_wake_soon(void); /* in a few milliseconds: all that a P which begins to work needs */

/* A thread without a P: n less of what keeps the program from a deadlock (deadlock.c). */
void sysmon_uncount(uint32_t *count, uint32_t n);

#endif
