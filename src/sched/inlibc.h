/*
 * Goroutines that are to stop for good, or for long, and stand inside libc. See inlibc.c.
 */
#ifndef INLIBC_H
#define INLIBC_H

#include "runtime.h"

void inlibc_start(void); /* before a runtime starts; may take the loader's lock */

/* Does m, which waits in the preemption handler, stand inside libc? sched.lock, or the world is
 * stopped. */
bool inlibc_stopped(M *m);

/* In the handler, of the goroutine that was interrupted there: makes it stop when it has left libc.
 * OUTSIDE: it is not inside, or has been for too long, or this cannot be done here: then it stops
 * where it stands. */
enum {
    OUTSIDE,
    INSIDE,
    IN_CALLBACK /* inside, in a function of the program's that libc called, or in a handler */
};
int inlibc_trap(G *gp, void *context);

#endif
