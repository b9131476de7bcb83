/*
 * Stacks of goroutines: lazily committed, guarded, reused last-in first-out. See stack.c.
 */
#ifndef STACK_H
#define STACK_H

#include "runtime.h"

/* A default stack, its record included, and the guard below it. Both together are an odd number of
 * pages: what is in use of many stacks is their tops, and at a stride of 52 pages these fall into a
 * quarter of the sets of a second-level cache. A yield among a thousand goroutines is a third
 * faster for it. */
#define STACK_USABLE ((size_t)208 << 10)
#define GUARD_NEAR ((size_t)28 << 10)
#define GUARD_WIDE ((size_t)1028 << 10)
#define STACK_STRIDE (STACK_USABLE + GUARD_NEAR)
#define STACK_NAME 32

/* The record at the very top of a stack's memory. It exists while the stack is in use or cached
 * with its memory; a stack that was given back to the system is only a bit in its slab. */
enum {
    STACK_SLAB,
    STACK_CUSTOM, /* not from a slab; unmapped when freed */
    STACK_COMPACT /* compact_stack.h */
};
struct Stack {
    char *lo;        /* lowest usable byte; the guard is below */
    Stack *next;     /* cache it is in */
    uint32_t index;  /* place in its slab; decides the colour */
    uint16_t custom; /* STACK_... */
    uint16_t canary; /* 1: no guard, a word at its end is looked at instead */
    size_t size;     /* of the whole mapping, for custom ones */
    size_t guard;    /* bytes of the guard below lo */
    char name[STACK_NAME];
    void *san_fiber; /* TSan's fiber, or ASan's fake stack */
    Segment *seg;    /* split.c: the newest segment it has grown by, if any */
    Segment *kept;   /* split.c: a large one that was just left */
    Segment *blocks; /* split.c: dynamic arrays that did not fit */
    /* the hook's: what libraries keep for its goroutine (hook/threadkeys.c); NULL: nothing */
    void *values;
    uintptr_t live;      /* boehm.c, while all are stopped: where it begins */
    uint32_t trap_tries; /* inlibc.c: signals since its goroutine is to leave libc */
    /* atomic: its goroutine has left its runtime for good, or the end of that has come by (init.c)
     * */
    uint32_t settled;
    /* the hook of the gort_blocking that its goroutine is in (goexit.h); NULL: it is in none */
    void *blocking;
    uint64_t magic; /* finds a record overwritten from below the next stack */
} ALIGNED(64);

/* Promises: gort_go must fail with -ENOMEM rather than the goroutine when it first runs. A G
 * without a stack holds a credit: the address space for its stack is mapped. */
bool stack_credit_fetch(M *m);  /* the P has none, or there is no P */
void stack_credit_return(M *m); /* the P has plenty, or there is no P */
#define CREDITS_PLENTY 128
INLINE bool stack_credit_take(M *m) { /* false: no address space */
    P *p = m->p;
    if (unlikely(p == NULL || p->credits == 0)) return stack_credit_fetch(m);
    p->credits--;
    return true;
}
INLINE void stack_credit_give(M *m) {
    P *p = m->p;
    if (unlikely(p == NULL || p->credits == CREDITS_PLENTY)) stack_credit_return(m);
    else p->credits++;
}

Stack *stack_get(M *m); /* against a credit: never fails. In a section */
void stack_put(M *m, Stack *s);
void stack_record(Stack *s, char *lo, int kind); /* a fresh record of any kind */
Stack *stack_custom(size_t size);                /* NULL: no memory. Not in a section: maps */
void stack_custom_free(Stack *s);

/* Where the first frame goes: below the record, coloured so that the tops of many stacks do not
 * fall into the same cache sets. */
INLINE void *stack_top(Stack *s) { return (char *)s - (size_t)(s->index & 15) * 64; }
INLINE size_t stack_span(Stack *s) { return (size_t)((char *)s - s->lo); }

/* TSan remembers what other goroutines did on this memory, and takes the next one's frames for
 * races: it forgets, and has a new fiber for the next one. */
void stack_forget_slow(Stack *s);
#define stack_forget(s) TSAN_TELL(stack_forget_slow, (s))

/* The address lies in the guard below s (or, without guards, just below its end). */
bool stack_guard_hit(Stack *s, uintptr_t addr);
/* A goroutine's stack pointer is on the stack of another: a frame larger than the guard has stepped
 * over it. Nothing is locked. */
bool stack_jumped(Stack *s, uintptr_t sp);
void stack_jump_found(G *gp, uintptr_t sp);
/* Where a goroutine is met anyway: fatal if its stack pointer is not on its stack. */
INLINE void stack_check_sp(G *gp, uintptr_t sp) {
    Stack *s = gp->stack;
    if (s && unlikely(sp - (uintptr_t)s->lo > stack_span(s))) stack_jump_found(gp, sp);
}
void stack_check(Stack *s);    /* canary of an unguarded stack; fatal when overwritten */
void stack_flush(P *p);        /* a P goes away */
uint64_t stack_scavenge(void); /* monitor: gives idle stacks back; how many are still idle */
uint64_t stack_reserved(void);
uint64_t stack_cached(void);
int stack_guard_kind(void);
/* The stack from a slab that this address lies in; NULL: none. Nothing is locked. */
Stack *stack_at(uintptr_t addr);

#endif
