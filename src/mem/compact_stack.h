/*
 * Compact stacks: 1.5 KB side by side, for goroutines whose code checks its stack. See
 * compact_stack.c.
 */
#ifndef COMPACT_STACK_H
#define COMPACT_STACK_H

#include "mem/stack.h"

/* Promises, as those of stack.h, needed only where the range is short (slots.scarce): 178 million
 * are as good as no bound. */
bool compact_credit_take(void);
void compact_credit_give(void);
/* against a credit, where these are needed: never fails. In a section, with a P */
Stack *compact_get(M *m);
void compact_put(M *m, Stack *s); /* in a section */
void compact_flush(P *p);         /* a P goes away */
uint64_t compact_cached(void);    /* bytes in caches of Ps */

#endif
