/*
 * Compact stacks: 1.5 KB side by side, for goroutines whose code checks its stack. See compact.c.
 */
#ifndef COMPACT_H
#define COMPACT_H

#include "stack.h"

Stack *compact_get(M *m);            /* never fails while the range lasts (178 million). In a section, with a P */
void compact_put(M *m, Stack *s);    /* in a section */
void compact_flush(P *p);            /* a P goes away */
uint64_t compact_cached(void);       /* bytes in caches of Ps */

#endif
