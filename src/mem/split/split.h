/* Stacks that grow by segments, for code built with -fsplit-stack (split.c). */
#ifndef SPLIT_H
#define SPLIT_H

#include "guard.h"
#include "mem/compact_mem.h"
#include "mem/stack.h"

enum {
    SPLIT_OFF,    /* the program has no such code: a switch tests one word */
    SPLIT_HYBRID, /* its linker knows nothing of such code: lazy stacks that can grow */
    SPLIT_TRUE    /* its linker sends code without checks to larger segments: compact stacks */
};

extern struct Split {
    uint32_t mode;
    uint32_t linked;            /* the program contains libgort_split.a */
    bool rewritten;             /* its linker rewrites callers of code without checks */
    size_t reserve;             /* between a segment's end and its guard */
    uintptr_t code_lo, code_hi; /* __morestack: frames above it are on another segment */
} split;

/* What a segment keeps below its guard in SPLIT_TRUE: frames of up to 256 bytes are not checked,
 * dynamic arrays that live elsewhere take 16 bytes each, and __morestack needs room itself. */
#define RESERVE_FRAME ((size_t)256)
#define RESERVE_SLACK ((size_t)128)
#define RESERVE_SELF ((size_t)448)
#define RESERVE_TRUE (RESERVE_FRAME + RESERVE_SLACK + RESERVE_SELF)
/* For code without checks; every library function measured needs less than 12 KB. */
#define RESERVE_LIBC ((size_t)32 << 10)
/* No stack pointer is above it, even in a signed comparison. */
#define GUARD_POISON ((uintptr_t)INT64_MAX)

/* The record at the top of a slot that a goroutine has grown into. */
struct Segment {
    Segment *prev;
    uintptr_t lo;    /* its lowest byte */
    uintptr_t tag;   /* the stack pointer when the segment, or the dynamic array, was made */
    uintptr_t below; /* the guard of the segment before */
    size_t room;     /* for a frame and its arguments */
    uint32_t cls;
    uint32_t magic;
} ALIGNED(16);

void split_begin(void);        /* at every start of a runtime: decides the mode */
void split_thread_begin(M *m); /* on m's own thread */
void split_thread_end(M *m);   /* on m's own thread */
/* Gives back the segments of a stack that is not in use any more. In a section. */
void split_release(M *m, Stack *s);
void split_poison(M *m);       /* the monitor sends m's next prologue to split.c */
uint64_t split_segments(void); /* how many goroutines hold now */
/* fn checks its stack, so its goroutine may start on a compact one. `copy` is the argument of a
 * function of ours that calls the program's (goexit.h). */
bool split_starts(gort_fn *fn, const void *copy);

NOINLINE void split_resume(G *gp);
/* gp continues on this thread: sets the thread's guard to gp's. */
INLINE void guard_restore(G *gp) {
    if (unlikely(split.mode != SPLIT_OFF)) split_resume(gp);
}

/* Runs fn(arg) on g0's stack if the caller's is compact. In a section; fn does not switch. */
INLINE long call_with_room(M *m, long (*fn)(void *), void *arg) {
    int cls;
    if (likely(split.mode != SPLIT_TRUE) || m == NULL || m->curg == NULL || m->g0sp == NULL ||
        slot_at(arch_sp(), &cls) == 0)
        return fn(arg);
    return arch_call_on(m->g0sp, fn, arg);
}

#endif
