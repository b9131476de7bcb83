/* What split.c cannot do on a nearly full stack with arguments in the registers (split_slow.c). */
#ifndef SPLIT_SLOW_H
#define SPLIT_SLOW_H

#include "mem/split/split.h"

enum {
    SLOW_TAKE,    /* get a segment of class `with`; does not return without one */
    SLOW_GIVE,    /* take the segment `with` back, which was left */
    SLOW_UNKEEP,  /* free the kept segment: the goroutine has shrunk further */
    SLOW_SPACE,   /* get a block of `with` bytes */
    SLOW_BLOCKS,  /* free the blocks made at or below `with`, on the segment it lies in */
    SLOW_PREEMPT, /* the monitor wants the processor */
    SLOW_BELOW,   /* report: the stack pointer is below the end of the stack */
    SLOW_BROKEN   /* report: a segment's record was overwritten */
};

/* On the goroutine's own thread and stack, in a section or not. */
uintptr_t split_slow(M *m, int what, Stack *s, uintptr_t with);

#endif
