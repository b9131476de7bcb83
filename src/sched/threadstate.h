/* Does a thread compute, or does it sleep in the kernel? See threadstate.c. */
#ifndef THREADSTATE_H
#define THREADSTATE_H

#include "runtime.h"

/* m is on a CPU, or waits for one; false: not so, or unknown. Any thread. */
bool thread_awake(M *m);
/* Likewise, for repeated requests to stop; a new request sets asked_cpu to -1. */
bool thread_asked(M *m);
/* m sleeps; cpu: its clock now, to be compared with m->seen_cpu where there is no /proc. */
bool thread_asleep(M *m, int64_t cpu);
void thread_seen(M *m, int64_t cpu); /* notes that m's clock stands at cpu now */

#endif
