/*
 * What split.c cannot do on a nearly full stack with arguments in the registers. See split_slow.c.
 */
#ifndef SPLIT_SLOW_H
#define SPLIT_SLOW_H

#include "mem/split/split.h"

enum {
    SLOW_TAKE,        /* a segment of the class `with`; does not come back without one */
    SLOW_GIVE,        /* the segment `with` was left */
    SLOW_UNKEEP,      /* the kept one is too large by now */
    SLOW_SPACE,       /* a block of `with` bytes */
    SLOW_BLOCKS,      /* those made in the segment at `with` go */
    SLOW_DEAD_BLOCKS, /* those that were made at or below the stack pointer `with` are dead */
    SLOW_PREEMPT,
    SLOW_BELOW, /* the stack pointer is below the end of the stack */
    SLOW_BROKEN
};

/* On the goroutine's own thread and stack, in a section or not. */
uintptr_t split_slow(M *m, int what, Stack *s, uintptr_t with);

#endif
