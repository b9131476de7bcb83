#ifndef STALL_H
#define STALL_H

#include "runtime.h"

/* The monitor: p is held by m's goroutine beyond its slice while others wait. Reports it once, when
 * that has lasted for GORT_DEBUG=stall=N ms. */
void stall_look(P *p, M *m, int64_t now);

#endif
