/*
 * Compact stacks. A slot of class 0 (slots.c) with the same record at its top as any other stack:
 *
 *     | reserve | ....................... frames <- | record |
 *     ^lo       ^guard                         top ^          1536 bytes
 *
 * There is no guard page: every function checks, and what does not check is sent to a larger segment
 * by the linker (split.c). Whatever slips through both, a call by a pointer that came from data the
 * linker did not see, runs into the record below, and its magic word tells when that goroutine ends.
 *
 * A P keeps up to STACK_CACHE of them, last-in first-out, as it does with lazy ones.
 */
#include "compact.h"
#include "slots.h"

static Stack *fresh(void) {
    char *lo = slot_alloc(0);
    if (lo == NULL) fatal("no address space for a compact stack");
    Stack *s = (Stack *)(void *)(lo + SLOT_BASE - sizeof(Stack));
    stack_record(s, lo, STACK_COMPACT);
    return s;
}

Stack *compact_get(M *m) {
    P *p = m->p;
    Stack *s = p->small;
    if (unlikely(s == NULL)) return fresh();
    p->small = s->next;
    p->nsmall--;
    return s;
}

static void free_list(Stack *s) {
    while (s) {
        Stack *next = s->next;
        slot_free(0, s->lo);
        s = next;
    }
}

void compact_put(M *m, Stack *s) {
    P *p = m->p;
    stack_check(s);
    if (p == NULL) {
        slot_free(0, s->lo);
        return;
    }
    s->next = p->small;
    p->small = s;
    if (likely(++p->nsmall <= STACK_CACHE)) return;
    Stack *keep = p->small; /* the warmer half */
    for (int i = 1; i < STACK_CACHE / 2; i++) keep = keep->next;
    free_list(keep->next);
    keep->next = NULL;
    p->nsmall = STACK_CACHE / 2;
}

void compact_flush(P *p) {
    free_list(p->small);
    p->small = NULL;
    p->nsmall = 0;
}

uint64_t compact_cached(void) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++)
        if (sched.ps[i]) n += load_rlx(&sched.ps[i]->nsmall);
    return n * SLOT_BASE;
}
