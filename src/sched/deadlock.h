#ifndef DEADLOCK_H
#define DEADLOCK_H

#include "runtime.h"

/* The monitor, when all Ps are idle: reports a deadlock and ends the process, or returns. True:
 * what speaks against a deadlock may end without telling the monitor, which has to look again. */
bool dead_check(void);
bool outsider_there(void); /* a plain thread that has called in has not ended */
uint64_t p_switches(void); /* of all Ps; unchanged: no goroutine has begun to run meanwhile */

#endif
