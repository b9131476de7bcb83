#ifndef SCHEDTRACE_H
#define SCHEDTRACE_H

#include "runtime.h"

/* The monitor only: prints the SCHED line (and with scheddetail a line for every P, M and G) to
 * stderr every GORT_DEBUG=schedtrace ms. Takes no lock, allocates nothing. */
void schedtrace_begin(int64_t now);
void schedtrace_look(M *m, int64_t now);
int64_t schedtrace_due(int64_t now);

#endif
