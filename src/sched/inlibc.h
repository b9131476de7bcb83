/* Goroutines that have to stop, for good or for long, and stand inside libc. See inlibc.c. */
#ifndef INLIBC_H
#define INLIBC_H

#include "runtime.h"

void inlibc_start(void); /* before a runtime starts; may take the loader's lock */

/* Does m wait in the preemption handler, inside libc? With sched.lock, or the world stopped. */
bool inlibc_stopped(M *m);

/* Does m wait there, and was interrupted in a function of libc's itself? A guess, at any time. */
bool inlibc_interrupted(M *m);

/* In the handler that interrupted gp: makes gp stop when it has left libc. OUTSIDE: gp is not
 * inside, or has been for too long, or no trap can be set: then gp stops where it stands. */
enum {
    OUTSIDE,
    INSIDE,
    IN_CALLBACK /* inside, in a function of the program that libc called, or in a handler */
};
int inlibc_trap(G *gp, void *context);

#endif
