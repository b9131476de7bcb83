/*
 * Every goroutine as text: gort_dump, SIGQUIT, fatal errors.
 */
#ifndef DUMP_H
#define DUMP_H

#include "base/print.h"
#include "sched/describe.h"

/* A block for every goroutine. Any thread, in a handler, under any lock. The current goroutine's
 * trace begins at the frame with the return address `from`, so that it does not show the function
 * that prints; 0: at the innermost. */
void dump_all(int fd);
void dump_all_from(int fd, uintptr_t from);
void dump_to(Out *o); /* into a growing Out; by ordinary goroutines */
/* One block. `context`: the signal handler's where gp's trace begins, or NULL. */
void dump_g(Out *o, G *gp, void *context);

#endif
