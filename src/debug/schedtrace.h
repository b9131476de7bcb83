#ifndef SCHEDTRACE_H
#define SCHEDTRACE_H

#include "runtime.h"

/* Prints the SCHED line (and with scheddetail a line for every P, M and G) to stderr. start_ns:
 * when the runtime started. Called by the monitor; takes no lock, allocates nothing. */
void schedtrace_print(int64_t start_ns);

#endif
