/*
 * Does a thread compute, or does it sleep in the kernel? See threadstate.c.
 */
#ifndef AWAKE_H
#define AWAKE_H

#include "runtime.h"

/* on a CPU, or waiting for one; false where it cannot be known. Any thread */
bool thread_awake(M *m);
/* likewise, for who asks it to stop again and again; a new request sets asked_cpu to -1 */
bool thread_asked(M *m);
/* Asleep since its clock stood at cpu, which m->seen_cpu says it did when it was last looked at. */
bool thread_asleep(M *m, int64_t cpu);
void thread_seen(M *m, int64_t cpu); /* the clock of m stands here now */

#endif
