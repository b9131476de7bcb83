#ifndef SYSMON_H
#define SYSMON_H

#include "runtime.h"

/* atomic. 1: the monitor sleeps deeply and wants to be woken; 2: its alarm is set; else 0 */
extern uint32_t sysmon_sleeps;
int sysmon_start(void);
void sysmon_stop(void);
/* The monitor does this work soon; always the same function. Any thread, in a handler too. */
void sysmon_ask(void (*work)(M *m));
void sysmon_wake_soon(void); /* in a few milliseconds: soon enough for a P that begins to work */
/* A thread without a P subtracts n from a count that speaks against a deadlock (deadlock.c). */
void sysmon_uncount(uint32_t *count, uint32_t n);

#endif
