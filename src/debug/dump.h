/*
 * Every goroutine as text: gort_dump, SIGQUIT, fatal errors.
 */
#ifndef DUMP_H
#define DUMP_H

#include "base/print.h"
#include "runtime.h"

const char *reason_text(int reason);                  /* Go's words for a WAIT_... */
const char *status_text(uint32_t status, int reason); /* `running`, `runnable`, ... or the reason */

/* A block for every goroutine. Any thread, in a handler, under any lock. The current goroutine's
 * trace begins at the frame with the return address `from`, so that it does not show the function
 * that prints; 0: at the innermost. */
void dump_all(int fd);
void dump_all_from(int fd, uintptr_t from);
void dump_to(Out *o); /* into a growing Out; by ordinary goroutines */
/* One block. `context`: the signal handler's where gp's trace begins, or NULL. */
void dump_g(Out *o, G *gp, void *context);

/* The program counters of gp, innermost first; 0 where it runs on another thread right now. */
int backtrace_g(G *gp, void *context, uintptr_t *pcs, int max);
/* The program's function that gp was started with. */
uintptr_t g_entry(G *gp);
/* The same by who makes it, before it may run: no system call. */
uintptr_t g_entry_new(G *gp);
/* gp's name copied into buf (of 32 bytes), "" where it has none. */
void g_name(G *gp, char *buf);

#endif
