/*
 * gort_alloc and gort_free: small objects from the cache of a P.
 *
 * Every P has two lists of free objects per size class: the list in use, of at most a batch, and a
 * spare that is a whole batch or empty. Only the P's holder touches its cache, in a section. An
 * empty list is replaced by the spare, else by a central batch; a full one becomes the spare, and
 * the old spare goes to the central list. So a swing around a boundary rarely goes there.
 *
 * An object goes to the cache of the P that frees it. Callers without a P use the central list.
 *
 * An object larger than SMALL_MAX comes from malloc, or from the collector (boehm.c), which must
 * scan it: outside of the section. gort_free tells such an object by its address. Where a sanitizer
 * or valgrind watches, or no region can be mapped, the central lists give nothing and every object
 * comes from malloc, so that the tool sees each use after free, leak and race.
 *
 * Two kinds of misuse are fatal: freeing an address inside a region at which no object begins, and
 * freeing a free object. A free object carries a mark in its second word, made from its address;
 * the program's own data equals it with a probability of 2^-64.
 */
#include "sched/alloc.h"
#include "base/fork.h"
#include "base/upstairs.h"
#include "sched/sched.h"
#include "mem/span.h"
#include "base/sysfault.h"

#include <stdlib.h>

typedef struct Bin {
    Free *list, *spare;
    uint32_t n; /* on list */
} Bin;

typedef struct AllocCache {
    Bin bins[SIZE_CLASSES];
} AllocCache;

#define FREE_MARK ((uintptr_t)0x9E3779B97F4A7C15ULL)
INLINE uintptr_t free_mark(const Free *f) { return (uintptr_t)f ^ FREE_MARK; }

/* ---- the cache of a P; its holder, in a section ---------------------------------------------- */

static NOINLINE AllocCache *alloc_cache_make(P *p) {
    AllocCache *c = os_map(sizeof *c, false);
    p->cache[0] = c;
    return c;
}

INLINE AllocCache *alloc_cache(P *p) {
    AllocCache *c = p->cache[0];
    return likely(c != NULL) ? c : alloc_cache_make(p);
}

static NOINLINE bool bin_refill(Bin *b, uint32_t cls) {
    if (b->spare != NULL) {
        b->list = b->spare;
        b->spare = NULL;
        b->n = class_batch[cls];
    } else {
        b->n = central_get(cls, &b->list);
    }
    return b->n > 0;
}

static NOINLINE void bin_make_room(Bin *b, uint32_t cls) {
    if (b->spare != NULL) central_put(cls, b->spare);
    b->spare = b->list;
    b->list = NULL;
    b->n = 0;
}

INLINE Free *alloc_take(M *m, uint32_t cls) {
    P *p = m->p;
    AllocCache *c;
    if (unlikely(p == NULL) || unlikely((c = alloc_cache(p)) == NULL)) return central_get_one(cls);
    Bin *b = &c->bins[cls];
    if (unlikely(b->list == NULL) && !bin_refill(b, cls)) return NULL;
    Free *f = b->list;
    b->list = f->next;
    b->n--;
    return f;
}

INLINE void alloc_give(M *m, uint32_t cls, Free *f) {
    P *p = m->p;
    AllocCache *c;
    if (unlikely(p == NULL) || unlikely((c = alloc_cache(p)) == NULL)) {
        central_put_one(cls, f);
        return;
    }
    Bin *b = &c->bins[cls];
    if (unlikely(b->n == class_batch[cls])) bin_make_room(b, cls);
    f->next = b->list;
    b->list = f;
    b->n++;
}

void alloc_flush(P *p) {
    AllocCache *c = p->cache[0];
    for (uint32_t cls = 0; c != NULL && cls < SIZE_CLASSES; cls++) {
        Bin *b = &c->bins[cls];
        central_put_some(cls, b->list);
        central_put_some(cls, b->spare);
        *b = (Bin){0};
    }
}

/* ---- libc's heap, outside of sections -------------------------------------------------------- */

INLINE size_t whole_lines(size_t size) {
    return (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

/* NOINLINE, both: inlined, a compiler would keep errno's address over a park to another thread. */

/* `lines`: whole cache lines. Else exact: sanitizers watch the ends of objects. */
static NOINLINE void *libc_alloc(size_t size, bool lines) {
    int saved = errno;
    void *at = collect_on ? upstairs.collect_alloc(size) : NULL;
    if (at == NULL) at = lines ? aligned_alloc(CACHE_LINE, whole_lines(size)) : malloc(size);
    /* clang assumes that an allocation leaves errno alone, and drops the store */
    fence_compiler();
    errno = saved;
    return at;
}

static NOINLINE void libc_free(void *at) {
    int saved = errno;
    if (unlikely(process.leaves)) return;
    if (!collect_on || !upstairs.collect_free(at)) free(at);
    fence_compiler();
    errno = saved;
}

static void *small_alloc(size_t size) {
    M *m = enter();
    Free *f = alloc_take(m, size_class(size));
    if (likely(f != NULL)) {
        f->mark = 0;
        count(m, allocs, 1);
    }
    leave(m);
    return f;
}

EXPORT void *gort_alloc(size_t size) {
    if (in_forked_child() || sysfault_alloc()) return NULL;
    void *at = likely(size <= SMALL_MAX) ? small_alloc(size) : NULL;
    return likely(at != NULL) ? at : libc_alloc(size, false);
}

static NOINLINE void freed_twice(void *at) { fatal("gort_free of %p, which is free already", at); }

/* `at` is an object of s. */
INLINE void small_free(Span *s, void *at) {
    uint32_t cls = span_class_checked(s, at);
    Free *f = at;
    if (unlikely(f->mark == free_mark(f))) freed_twice(at);
    M *m = enter();
    f->mark = free_mark(f);
    alloc_give(m, cls, f);
    count(m, frees, 1);
    leave(m);
}

void *quiet_alloc(size_t size) {
    if (sysfault_alloc()) return NULL;
    void *at = likely(size <= SMALL_MAX) ? small_alloc(whole_lines(size)) : NULL;
    return likely(at != NULL) ? at : libc_alloc(size, true);
}

void quiet_free(void *at) {
    Span *s = span_of(at); /* NULL is in no span: free() takes it */
    if (likely(s != NULL)) small_free(s, at);
    else libc_free(at);
}

EXPORT void gort_free(void *at) {
    if (!in_forked_child()) quiet_free(at);
}
