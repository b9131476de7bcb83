/*
 * Every goroutine as text: gort_dump, SIGQUIT, fatal errors.
 */
#ifndef DUMP_H
#define DUMP_H

#include "base/print.h"
#include "sched/describe.h"

/* A block for every goroutine. Any thread, in a handler, under any lock. The current goroutine's
 * trace starts with the frame that has the return address `from`, so that it does not begin with
 * who prints it; 0: with the innermost. */
void dump_all(int fd);
void dump_all_from(int fd, uintptr_t from);
void dump_to(Out *o); /* into a growing Out; ordinary goroutines */
/* one block; `context`: a signal handler's, where gp's trace starts, or NULL */
void dump_g(Out *o, G *gp, void *context);

/* Prints frames the way a dump does, a line each. */
void backtrace_print(Out *o, const uintptr_t *pcs, int n);

#endif
