/* Simulation: GORT_SIM=seed makes a program run the same way every time. See sim.c. */
#ifndef SIM_H
#define SIM_H

#include "runtime.h"

extern bool sim_on; /* between sim_begin() and sim_end(); constant while a runtime runs */

void sim_begin(void); /* gort_main, after the environment was read */
void sim_end(void);

void sim_waited(int64_t deadline); /* a thread has slept until then */

void sim_adopt(M *m); /* m has got the P */
M *sim_point(M *m);   /* a synchronisation point, in a section of depth 1: others may run first */
G *sim_pick(M *m);    /* on g0: any runnable G. NULL: there is none */
bool sim_idle(M *m);  /* on g0, no G is runnable. True: look again; false: wait in real time */
NOINLINE void sim_call(void);
void sim_hooked(void);     /* a hooked call of a program begins */
bool sim_yield(void);      /* a hooked sched_yield: true */
int64_t sim_elapsed(void); /* on the virtual clock, which goes on, since the runtime began */

/* A synchronisation point for calls whose fast way opens no section. */
#define SIM_POINT()                       \
    do {                                  \
        if (unlikely(sim_on)) sim_call(); \
    } while (0)

#endif
