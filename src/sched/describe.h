/*
 * A goroutine in words. See describe.c.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "runtime.h"

const char *reason_text(int reason);                  /* Go's words for a WAIT_... */
const char *status_text(uint32_t status, int reason); /* `running`, `runnable`, ... or the reason */

/* The program counters of gp, innermost first; 0 where it runs on another thread right now.
 * `context`: a signal handler's, where gp's trace starts, or NULL. Any thread, in a handler. */
int backtrace_g(G *gp, void *context, uintptr_t *pcs, int max);
/* The program's function that gp was started with. */
uintptr_t g_entry(G *gp);
/* The same by who makes it, before it may run: no system call. */
uintptr_t g_entry_new(G *gp);
/* gp's name copied into buf (of 32 bytes), "" where it has none. */
void g_name(G *gp, char *buf);

#endif
