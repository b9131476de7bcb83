/* Stopping the world, and changing the number of Ps. See stopworld.c. */
#ifndef STOPWORLD_H
#define STOPWORLD_H

#include "runtime.h"

void world_p_stopped_locked(P *p);  /* sched.lock: p, which the stopper waits for, has stopped */
void world_stop_here(M *m);         /* on g0 with a P: stops it if the world is to stop */
M *world_stop(M *m);                /* a goroutine, depth 1: returns when all others have stopped */
void procs_follow(int n);           /* a goroutine: the default has changed to n */
void world_reset(void);             /* a new runtime begins */
void world_answer_requests(M *m);   /* the end: plain threads in gort_maxprocs get -ENOTCONN */
int procs_resize(M *m, uint32_t n); /* with the world stopped, or before it runs. 0, -ENOMEM */

#endif
