/*
 * Contexts, for the rooms that have some of their own. See ctx.c.
 */
#ifndef CTX_H
#define CTX_H

#include "runtime.h"

/* Cancels c and all below it, in this section; nothing is freed. */
void ctx_cancel_in_section(gort_ctx *c, int cause);

#endif
