/*
 * Stopping the world, and changing the number of Ps. See stopworld.c.
 */
#ifndef WORLD_H
#define WORLD_H

#include "runtime.h"

void world_p_stopped_locked(P *p); /* sched.lock: one of the Ps that are waited for has stopped */
void world_stop_here(M *m);        /* on g0 with a P: it stops */
M *world_stop(M *m);               /* on a goroutine, depth 1: returns when nothing else runs */
void world_start(M *m);
void procs_follow(int n); /* a goroutine: the default has changed to n */
void world_reset(void);   /* a new runtime begins */
/* the runtime has ended: plain threads in gort_maxprocs get -ENOTCONN */
void world_answer_requests(M *m);
int procs_resize(M *m, uint32_t n); /* with the world stopped, or before it runs. 0, -ENOMEM */

#endif
