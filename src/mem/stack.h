/* Stacks of goroutines: lazily committed, guarded, reused last-in first-out (stack.c). */
#ifndef STACK_H
#define STACK_H

#include "runtime.h"

/* A default stack with its record, and the guard below it: together an odd number of pages. At a
 * stride of 52 pages the tops of many stacks fall into a quarter of the second-level cache's sets;
 * a yield among a thousand goroutines is a third faster at this stride. */
#define STACK_USABLE ((size_t)208 << 10)
#define GUARD_NEAR ((size_t)28 << 10)
#define GUARD_WIDE ((size_t)1028 << 10)
#define STACK_STRIDE (STACK_USABLE + GUARD_NEAR)
#define STACK_NAME 32

enum {
    STACK_SLAB,
    STACK_CUSTOM,  /* not from a slab; unmapped when freed */
    STACK_COMPACT, /* compact_stack.h */
    STACK_BODY     /* a custom one with a thread of libc's at its top (sched/body.c) */
};
/* The record at the top of a stack's memory, while that is in use or cached (stack.c). */
struct Stack {
    char *lo;        /* lowest usable byte; the guard is below */
    Stack *next;     /* in its cache or list */
    uint32_t index;  /* place in its slab; decides the colour */
    uint16_t custom; /* its kind: STACK_... */
    uint16_t canary; /* 1: it has no guard but a canary word at lo */
    size_t size;     /* of the whole mapping, for custom ones */
    size_t guard;    /* bytes of the guard below lo */
    char name[STACK_NAME];
    void *san_fiber; /* TSan's fiber, or ASan's fake stack */
    Segment *seg;    /* split.c: the newest segment it has grown by, if any */
    Segment *kept;   /* split.c: a large segment that was just left */
    Segment *blocks; /* split.c: dynamic arrays that did not fit */
    void *values;    /* hook/threadkeys.c: what libraries keep for the goroutine; NULL: nothing */
    Ender ender;     /* with ODD_USES */
    uintptr_t live;  /* boehm.c, while the world is stopped: where live data begins */
    uint32_t trap_tries; /* inlibc.c: signals sent to make the goroutine leave libc */
    uint32_t settled;    /* atomic: set by its thread and the runtime's end; the second buries G */
    uint64_t magic;      /* detects a record overwritten from the stack above */
} ALIGNED(64);

/* A G without a stack holds a credit, for which the address space of one is mapped (stack.c). */
bool stack_credit_fetch(M *m);  /* the P has none, or there is no P; false: no address space */
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

Stack *stack_get(M *m);         /* in a section, with a P; against a credit, so it never fails */
void stack_put(M *m, Stack *s); /* in a section */
void stack_record(Stack *s, char *lo, int kind); /* writes a fresh record */
Stack *stack_custom(size_t size);                /* NULL: no memory. Maps: not in a section */
void stack_custom_free(Stack *s);
size_t stack_custom_span(size_t size); /* stack_span of one of that size */

/* Where the first frame goes: below the record, coloured to spread tops over cache sets. */
INLINE void *stack_top(Stack *s) { return (char *)s - (size_t)(s->index & 15) * 64; }
INLINE size_t stack_span(Stack *s) { return (size_t)((char *)s - s->lo); }

/* The sanitizers forget the frames here, or the next goroutine's would race with them. */
void stack_forget_slow(Stack *s);
#define stack_forget(s) SAN_TELL(stack_forget_slow, (s))

/* The address lies in the guard below s (or, without guards, just below its end). */
bool stack_guard_hit(Stack *s, uintptr_t addr);
/* sp, of s's goroutine, is on another stack: a frame stepped over the guard. Takes no lock. */
bool stack_jumped(Stack *s, uintptr_t sp);
void stack_jump_found(G *gp, uintptr_t sp);
const char *stack_advice(G *gp); /* what to do after an overflow */
/* Fatal if gp's stack pointer is on another stack. Called wherever a G is met anyway. */
INLINE void stack_check_sp(G *gp, uintptr_t sp) {
    Stack *s = gp->stack;
    if (s && unlikely(sp - (uintptr_t)s->lo > stack_span(s))) stack_jump_found(gp, sp);
}
void stack_check(Stack *s);    /* fatal if its record or canary was overwritten */
void stack_flush(P *p);        /* a P goes away */
uint64_t stack_scavenge(void); /* the monitor gives idle stacks back; how many are still idle */
uint64_t stack_reserved(void); /* bytes of address space */
uint64_t stack_cached(void);   /* bytes of memory in idle stacks, at least */
int stack_guard_kind(void);
/* The stack from a slab that this address lies in; NULL: none. Takes no lock. */
Stack *stack_at(uintptr_t addr);

#endif
