/*
 * gort_alloc and gort_free: small objects from the cache of a P.
 *
 * Every P has two lists of free objects per size class: the one in use, of at most a batch, and a
 * spare that is a whole batch or nothing. Taking and giving are a few plain instructions on the
 * list in use, since only the holder of a P touches its cache, in a section. An empty list is
 * replaced by the spare, else by a batch from the central list; a full one becomes the spare, and
 * the spare before it goes to the central list. So a program that swings around a boundary does
 * not visit the central list for every object, and a batch changes hands whole (span.c).
 *
 * An object may be freed anywhere: on another P, in a plain thread, after its runtime has ended.
 * It goes to the cache of whoever frees it. Callers without a P take and give single objects at
 * the central list.
 *
 * What is larger than SMALL_MAX comes from malloc, outside of the section; gort_free tells by the
 * address. Where a sanitizer or valgrind watches, everything does, so that they see a use after
 * free, a leak, a race as what it is: the central lists then never give anything, the caches stay
 * empty, and the slow path is the only one. The same happens where no region can be mapped.
 *
 * With a collector (boehm.c) what is large comes from it, since it has to be looked into.
 *
 * Misuse is found out where it is cheap: an address inside a region at which no object begins, and
 * an object that is on a free list already. A free object carries a mark in its second word that
 * depends on its address and is taken off when it is given out; a program's own data equals it
 * with a probability of 2^-64.
 *
 * The runtime's rooms use it through quiet_alloc: channels, timers, contexts, groups, pools.
 */
#include "sched/alloc.h"
#include "base/upstairs.h"
#include "sched/sched.h"
#include "mem/span.h"
#include "base/sysfault.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Bin {
    Free *list, *spare;
    uint32_t n; /* on list */
} Bin;

typedef struct Cache {
    Bin bins[SIZE_CLASSES];
} Cache;

#define MARK ((uintptr_t)0x9E3779B97F4A7C15ULL)
INLINE uintptr_t free_mark(const Free *f) { return (uintptr_t)f ^ MARK; }

/* ---- the cache of a P; its holder, in a section ---------------------------------------------- */

static NOINLINE Cache *cache_make(P *p) {
    Cache *c = os_map(sizeof *c, false);
    p->cache[0] = c;
    return c;
}

INLINE Cache *cache_of(P *p) {
    Cache *c = p->cache[0];
    return likely(c != NULL) ? c : cache_make(p);
}

static NOINLINE bool refill(Bin *b, uint32_t cls) {
    if (b->spare != NULL) {
        b->list = b->spare;
        b->spare = NULL;
        b->n = class_batch[cls];
    } else {
        b->n = central_get(cls, &b->list);
    }
    return b->n > 0;
}

static NOINLINE void make_room(Bin *b, uint32_t cls) {
    if (b->spare != NULL) central_put(cls, b->spare);
    b->spare = b->list;
    b->list = NULL;
    b->n = 0;
}

INLINE Free *take(M *m, uint32_t cls) {
    P *p = m->p;
    Cache *c;
    if (unlikely(p == NULL) || unlikely((c = cache_of(p)) == NULL)) return central_get_one(cls);
    Bin *b = &c->bins[cls];
    if (unlikely(b->list == NULL) && !refill(b, cls)) return NULL;
    Free *f = b->list;
    b->list = f->next;
    b->n--;
    return f;
}

INLINE void give(M *m, uint32_t cls, Free *f) {
    P *p = m->p;
    Cache *c;
    if (unlikely(p == NULL) || unlikely((c = cache_of(p)) == NULL)) {
        central_put_one(cls, f);
        return;
    }
    Bin *b = &c->bins[cls];
    if (unlikely(b->n == class_batch[cls])) make_room(b, cls);
    f->next = b->list;
    b->list = f;
    b->n++;
}

void alloc_flush(P *p) {
    Cache *c = p->cache[0];
    for (uint32_t cls = 0; c != NULL && cls < SIZE_CLASSES; cls++) {
        Bin *b = &c->bins[cls];
        central_put_some(cls, b->list);
        central_put_some(cls, b->spare);
        *b = (Bin){0};
    }
}

/* ---- libc's, outside of sections. Never inlined: a compiler that has seen errno before a park
 * would use the old thread's after it.
 * ---------------------------------------------------------- */

static NOINLINE void *libc_alloc(size_t size) {
    int saved = errno;
    void *at = collect_on ? upstairs.collect_alloc(size) : NULL;
    if (at == NULL)
        at = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    /* clang believes that an allocation leaves errno alone, and drops the store */
    fence_compiler();
    errno = saved;
    return at;
}

static NOINLINE void *libc_malloc(size_t size) { /* exact, for who watches the ends of objects */
    int saved = errno;
    void *at = collect_on ? upstairs.collect_alloc(size) : NULL;
    if (at == NULL) at = malloc(size);
    fence_compiler();
    errno = saved;
    return at;
}

static NOINLINE void libc_free(void *at) {
    int saved = errno;
    if (!collect_on || !upstairs.collect_free(at)) free(at);
    fence_compiler();
    errno = saved;
}

/* ---- the interface --------------------------------------------------------------------------- */

static void *small(size_t size) {
    M *m = enter();
    Free *f = take(m, size_class(size));
    if (likely(f != NULL)) {
        f->mark = 0;
        count(m, allocs, 1);
    }
    leave(m);
    return f;
}

EXPORT void *gort_alloc(size_t size) {
    CHILD_RETURNS(NULL);
    if (sysfault_alloc()) return NULL;
    void *at = likely(size <= SMALL_MAX) ? small(size) : NULL;
    return likely(at != NULL) ? at : libc_malloc(size);
}

static NOINLINE void freed_twice(void *at) { fatal("gort_free of %p, which is free already", at); }

/* `at` is an object of s. */
INLINE void small_free(Span *s, void *at) {
    uint32_t cls = span_class_checked(s, at);
    Free *f = at;
    if (unlikely(f->mark == free_mark(f))) freed_twice(at);
    M *m = enter();
    f->mark = free_mark(f);
    give(m, cls, f);
    count(m, frees, 1);
    leave(m);
}

EXPORT void gort_free(void *at) {
    CHILD_RETURNS();
    Span *s = span_of(at); /* NULL is nobody's: free() takes it */
    if (likely(s != NULL)) small_free(s, at);
    else libc_free(at);
}

void *quiet_alloc(size_t size) {
    if (sysfault_alloc()) return NULL;
    void *at = likely(size <= SMALL_MAX)
                   ? small((size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1))
                   : NULL;
    return likely(at != NULL) ? at : libc_alloc(size);
}

void quiet_free(void *at) {
    Span *s = span_of(at);
    if (likely(s != NULL)) small_free(s, at);
    else libc_free(at);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Not enter(): the thread that forks must not be another one behind it. */
static void before_fork(void) {
    M *m = getm();
    if (m) m->locks++;
    span_fork(true);
}

static void after_fork(void) {
    M *m = getm();
    span_fork(false);
    if (m) m->locks--;
}

__attribute__((constructor)) static void watch_fork(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}
