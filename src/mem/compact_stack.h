/* Compact stacks: 1.5 KB, for goroutines whose code checks its stack (compact_stack.c). */
#ifndef COMPACT_STACK_H
#define COMPACT_STACK_H

#include "mem/stack.h"

/* Credits as in stack.h, counted only if slots.scarce: a full range holds 178 million stacks. */
bool compact_credit_take(void);
void compact_credit_give(void);
Stack *compact_get(M *m);         /* in a section, with a P; against a credit, so it never fails */
void compact_put(M *m, Stack *s); /* in a section */
void compact_flush(P *p);         /* a P goes away */
uint64_t compact_cached(void);    /* bytes in caches of Ps */

#endif
