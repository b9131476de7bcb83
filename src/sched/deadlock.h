#ifndef DEAD_H
#define DEAD_H

#include "runtime.h"

/* The monitor, when all Ps are idle: reports a deadlock and ends the process, or returns. True:
 * what speaks against it may be over without a word, look again later. */
bool dead_check(void);
uint64_t p_switches(void); /* of all Ps: the same again, and no goroutine has run meanwhile */

#endif
