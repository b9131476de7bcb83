/* Small objects: size classes and the central lists (span.c). The caches of the Ps: alloc.c. */
#ifndef SPAN_H
#define SPAN_H

#include "runtime.h"

#define SMALL_MAX ((size_t)4096)
#define SIZE_CLASSES 26
#define REGION_SHIFT 28 /* 256 MB, aligned to their size */
#define SPAN_SHIFT 16
#define ADDRESS_BITS 47 /* a region above this is not used */

extern const uint16_t class_bytes[SIZE_CLASSES];
extern const uint8_t class_batch[SIZE_CLASSES]; /* objects that move at a time */

/* Steps of 16 up to 128, of 64 up to 512, then four per doubling: above 112 on a cache line. */
INLINE uint32_t size_class(size_t size) {
    if (size <= 128) return size == 0 ? 0 : (uint32_t)(size - 1) >> 4;
    if (size <= 512) return 8 + ((uint32_t)(size - 129) >> 6);
    uint32_t k = 31 - (uint32_t)__builtin_clz((uint32_t)(size - 1)); /* 9: 513 to 1024 */
    return 14 + (k - 9) * 4 + ((uint32_t)(size - 1) >> (k - 2) & 3);
}

/* A free object. */
typedef struct Free {
    struct Free *next;
    uintptr_t mark; /* free_mark(): detects a double free (alloc.c) */
} Free;

typedef struct Span Span;
struct Span {
    /* constant while the span is in use: */
    uint32_t cls;     /* its size class + 1; 0: free, or never used */
    uint32_t bytes;   /* of an object */
    uint64_t inverse; /* 2^32 / bytes, rounded up: offset * inverse >> 32 is the index */
    /* the class's lock: */
    uint32_t capacity, carved, nfree; /* objects that fit, ever given out, on `free` */
    bool listed;
    Free *free;
    Span *next, *prev; /* the class's spans with free objects; in the pool: next only */
} ALIGNED(CACHE_LINE);

#define REGION_BYTES ((size_t)1 << REGION_SHIFT)
#define SPAN_BYTES ((size_t)1 << SPAN_SHIFT)
#define REGION_TABLE ((size_t)1 << (ADDRESS_BITS - REGION_SHIFT))
extern uint8_t span_regions[REGION_TABLE]; /* atomic: 1: this region is ours */
NORETURN void span_misused(const void *at);

INLINE char *region_of(const void *at) { return (char *)((uintptr_t)at & ~(REGION_BYTES - 1)); }
/* `at` is ours. */
INLINE Span *record_of(const void *at) {
    return (Span *)(void *)region_of(at) + (((uintptr_t)at & (REGION_BYTES - 1)) >> SPAN_SHIFT);
}
/* The span of an object; NULL: not ours. Anywhere, any address. */
INLINE Span *span_of(const void *at) {
    size_t i = (uintptr_t)at >> REGION_SHIFT;
    return i < REGION_TABLE && load_rlx(&span_regions[i]) ? record_of(at) : NULL;
}
/* The class of the object at `at`, which lies in s; fatal if no object begins there. */
INLINE uint32_t span_class_checked(Span *s, const void *at) {
    uint32_t cls = load_rlx(&s->cls), offset = (uint32_t)((uintptr_t)at & (SPAN_BYTES - 1));
    uint32_t index = (uint32_t)(offset * s->inverse >> 32);
    if (unlikely(cls == 0 || index * s->bytes != offset || index >= s->capacity)) span_misused(at);
    return cls - 1;
}

/* All in a section. */
uint32_t central_get(uint32_t cls, Free **list); /* up to a batch: how many; 0: no memory */
void central_put(uint32_t cls, Free *batch);     /* exactly a batch */
void central_put_some(uint32_t cls, Free *list); /* any number */
Free *central_get_one(uint32_t cls);             /* for callers without a P */
void central_put_one(uint32_t cls, Free *f);

/* The monitor, once a second: gives back what was idle. How many batches and spans may still go. */
uint64_t span_scavenge(void);
uint64_t span_bytes_used(void); /* of spans that hold objects */
uint64_t span_bytes_idle(void); /* of free spans that still have their pages */
/* Calls fn for the carved part of every span in use. Takes no lock. */
void each_span(void (*fn)(void *lo, void *hi));

/* A sanitizer or valgrind watches this process and must see each object come and go. */
bool span_malloc_instead(void);
void span_fork(bool before);

#endif
