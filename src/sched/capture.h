/* Where is a goroutine that runs on another thread? (capture.c) */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "runtime.h"

/* The frames of m's goroutine; 0: unknown. Waits 20 ms at most. Any thread, in a handler too. */
int capture_running(M *m, uintptr_t *pcs, int max);
/* In a handler of m's own thread: the interrupted frames. *on_g0: not the goroutine's. */
int capture_context(M *m, void *context, uintptr_t *pcs, int max, bool *on_g0);
/* In the handler of the preemption signal, on any thread: answers the question if it is for m. */
void capture_here(M *m, void *context);

#endif
