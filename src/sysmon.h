#ifndef SYSMON_H
#define SYSMON_H

#include "runtime.h"

extern uint32_t sysmon_sleeps; /* atomic: the monitor sleeps deeply and wants to be woken */
int sysmon_start(void);
void sysmon_stop(void);
void sysmon_wake(void);

#endif
