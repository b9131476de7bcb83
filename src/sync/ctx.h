/*
 * Contexts, for the rooms that have some of their own. See ctx.c.
 */
#ifndef CTX_H
#define CTX_H

#include "runtime.h"

/* In a section: cancels c and all below it; frees nothing. */
void ctx_cancel_in_section(gort_ctx *c, int cause);

#endif
