#ifndef DEAD_H
#define DEAD_H

#include "runtime.h"

/* The monitor, when all Ps are idle: reports a deadlock and ends the process, or returns. True:
 * only the number of threads speaks against it, look again later. */
bool dead_check(void);

#endif
