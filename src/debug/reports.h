/* What the monitor prints on stderr. Takes no lock, allocates nothing. floor.c enters it. */
#ifndef REPORTS_H
#define REPORTS_H

#include "base/upstairs.h"

extern const MonitorClient schedtrace_client; /* GORT_DEBUG=schedtrace (schedtrace.c) */
extern const MonitorClient leak_client;       /* GORT_DEBUG=leak (leak.c) */
/* m's goroutine holds p beyond its slice while others wait: reports a stall once (stall.c). */
void stall_look(P *p, M *m, int64_t now);

#endif
