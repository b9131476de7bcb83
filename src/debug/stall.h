#ifndef STALL_H
#define STALL_H

#include "runtime.h"

/* The monitor: m's goroutine holds p beyond its slice while others wait. Reports a stall once. */
void stall_look(P *p, M *m, int64_t now);

#endif
