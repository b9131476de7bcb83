/* A goroutine in words. See describe.c. */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "runtime.h"

const char *reason_text(int reason);                  /* Go's words for a WAIT_... */
const char *status_text(uint32_t status, int reason); /* `running`, `runnable`, ... or the reason */

/* The program counters of gp, innermost first; 0: unknown. Asks gp's thread where gp runs
 * (capture.h). `context`: of the handler that interrupted gp, or NULL. Any thread, any handler. */
int backtrace_g(G *gp, void *context, uintptr_t *pcs, int max);
/* Likewise; more[i]: the frames of a recursion that were left out behind pcs[i] (fold.c). */
int backtrace_g_folded(G *gp, void *context, uintptr_t *pcs, uint32_t *more, int max);
uintptr_t g_entry(G *gp);     /* the program's function that gp was started with */
uintptr_t g_entry_new(G *gp); /* likewise, by gp's maker before gp may run: no system call */
/* gp's name copied into buf (of 32 bytes), "" where it has none. */
void g_name(G *gp, char *buf);
void g_rename(M *m, G *gp, const char *name); /* one that has a name. In a section */
bool g_is_thread(G *gp);                      /* it has a body (body.c) */

#endif
