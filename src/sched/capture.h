/*
 * Where is a goroutine that runs on another thread? (capture.c)
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "runtime.h"

/* The frames of what m's goroutine is doing at this moment; 0: it could not be found out. Waits
 * 20 ms at most. Any thread, in a handler. */
int capture_running(M *m, uintptr_t *pcs, int max);
/* In a handler of m's own thread: the interrupted frames. *on_g0: not those of its goroutine but of
 * the scheduler, or of a handler. */
int capture_context(M *m, void *context, uintptr_t *pcs, int max, bool *on_g0);
/* In the handler of the preemption signal, of whatever thread: answers if it was asked. */
void capture_here(M *m, void *context);

#endif
