/*
 * Compact stacks. Each is a slot of class 0 (compact_mem.c) with a Stack record at its top:
 *
 *     | reserve | ....................... frames <- | record |
 *     ^lo       ^guard                         top ^          1536 bytes
 *
 * There is no guard page: every function checks, and the linker sends calls of code without checks
 * to a larger segment (split.c). A call that slips through both, by a pointer the linker did not
 * see, overwrites the record of the stack below; its magic word tells when that goroutine ends.
 *
 * A P keeps up to STACK_CACHE of them, last-in first-out. Where the range is short, gort_go must
 * refuse what could not run: goroutines on compact stacks are counted, and no P keeps a free stack.
 */
#include "mem/compact_stack.h"
#include "os/os.h"
#include "mem/compact_mem.h"
#include "mem/split/split.h"

#define BATCH 16 /* slots taken and given at a time: few, since the array is on a compact stack */

static uint64_t credits; /* atomic: given out, where they are counted */

bool compact_credit_take(void) {
    if (likely(!slots.scarce)) return true;
    if (add_rlx(&credits, 1) <= slots_first()) return true;
    sub_rlx(&credits, 1);
    return false;
}

void compact_credit_give(void) {
    if (unlikely(slots.scarce)) sub_rlx(&credits, 1);
}

/* Up to BATCH slots; where stacks are counted one, for which the caller holds a credit. If none is
 * free now, the monitor holds the free ones while it gives their pages back. */
static int take_slots(void **slot) {
    if (likely(!slots.scarce)) return slot_alloc(0, slot, BATCH);
    while (slot_alloc(0, slot, 1) == 0) os_yield();
    return 1;
}

/* Fills p's cache with fresh stacks. Called by call_with_room. */
static long compact_refill(void *arg) {
    P *p = arg;
    void *slot[BATCH];
    int n = take_slots(slot);
    if (n == 0) fatal("no address space for a compact stack");
    while (n-- > 0) { /* the first slot, with the lowest address, ends on top */
        char *lo = slot[n];
        Stack *s = (Stack *)(void *)(lo + SLOT_BASE - sizeof(Stack));
        stack_record(s, lo, STACK_COMPACT);
        s->next = p->small;
        p->small = s;
        p->nsmall++;
    }
    return 0;
}

Stack *compact_get(M *m) {
    P *p = m->p;
    if (unlikely(p->small == NULL)) call_with_room(m, compact_refill, p);
    Stack *s = p->small;
    p->small = s->next;
    p->nsmall--;
    return s;
}

static void compact_free_list(Stack *s) {
    void *slot[BATCH];
    while (s) {
        int n = 0;
        for (; s && n < BATCH; s = s->next) slot[n++] = s->lo;
        slot_free(0, slot, n);
    }
}

void compact_put(M *m, Stack *s) {
    P *p = m->p;
    stack_check(s);
    if (unlikely(p == NULL || slots.scarce)) {
        void *slot = s->lo;
        slot_free(0, &slot, 1);
        return;
    }
    s->next = p->small;
    p->small = s;
    if (likely(++p->nsmall <= STACK_CACHE)) return;
    Stack *keep = p->small; /* the warmer half */
    for (int i = 1; i < STACK_CACHE / 2; i++) keep = keep->next;
    compact_free_list(keep->next);
    keep->next = NULL;
    p->nsmall = STACK_CACHE / 2;
}

void compact_flush(P *p) {
    compact_free_list(p->small);
    p->small = NULL;
    p->nsmall = 0;
}

uint64_t compact_cached(void) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++)
        if (sched.ps[i]) n += load_rlx(&sched.ps[i]->nsmall);
    return n * SLOT_BASE;
}
