/*
 * Where small objects come from.
 *
 * Memory is mapped in regions of 256 MB, aligned to their size and never unmapped. A table with a
 * byte for each possible region tells in one load whether an address is ours. A region is cut into
 * spans of 64 KB; its first spans hold the records of all, so that a span can be given back whole.
 *
 * A span serves one size class. Objects are carved off it in order; freed ones go to the span's own
 * list, last-in first-out. A class lists its spans that have free objects. A span that is all free
 * goes to the pool, for any class; after a second its pages go back to the system (span_scavenge).
 *
 * Sorting an object back touches its span's record. So a class also keeps a few batches: lists of
 * class_batch objects that Ps put and get whole, with two stores under the lock. The monitor sorts
 * back batches that lay untouched for a second. Callers without a P share a list per class.
 *
 * Locks: a class's (RANK_STACK), below it the pool's (RANK_LEAF), each held for a batch's worth of
 * work at most, except to map a region. Nothing here calls libc. A thread that forks takes all
 * locks first: the child of a process without a runtime has an intact heap. Orders: an object
 * passes to its next user through a class's lock, or within the cache of a P, by the P's change of
 * hands. A region's byte is stored before its first object is given out.
 */
#include "mem/span.h"
#include "base/san.h"

#define REGION_SPANS (REGION_BYTES / SPAN_BYTES)
#define BATCHES 32

const uint16_t class_bytes[SIZE_CLASSES] = {16,   32,   48,   64,   80,   96,   112,  128, 192,
                                            256,  320,  384,  448,  512,  640,  768,  896, 1024,
                                            1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096};
const uint8_t class_batch[SIZE_CLASSES] = {32, 32, 32, 32, 32, 32, 32, 32, 16, 16, 16, 16, 16,
                                           16, 8,  8,  8,  8,  4,  4,  4,  4,  4,  4,  4,  4};

_Static_assert(REGION_SPANS * sizeof(Span) % SPAN_BYTES == 0, "records fill whole spans");
#define RECORD_SPANS (REGION_SPANS * sizeof(Span) / SPAN_BYTES)

typedef struct Central {
    Lock lock;
    Span *spans;
    Free *loose;                    /* for callers without a P */
    uint32_t nloose, nbatches, low; /* low: fewest batches since the last scavenge */
    Free *batches[BATCHES];
} ALIGNED(CACHE_LINE) Central;

static Central central[SIZE_CLASSES];
static struct {
    Lock lock;
    /* lock: */
    Span *free;          /* unused spans that have their pages; */
    uint32_t nfree, low; /*   how many, and fewest since the last scavenge */
    Span *bare;          /* unused spans without pages */
    char *region;        /* atomic: the newest; its first record's `next` is the one before */
    uint32_t cut;        /* spans of it that were ever used */
    uint64_t used;       /* atomic for readers: spans in use */
} pool;
uint8_t span_regions[REGION_TABLE];

static char *span_base(Span *s) {
    char *region = region_of(s);
    return region + ((size_t)(s - (Span *)(void *)region) << SPAN_SHIFT);
}

NORETURN void span_misused(const void *at) { fatal("gort_free of %p, where no object begins", at); }

/* ---- regions and the pool; pool.lock --------------------------------------------------------- */

static bool add_region(void) {
    char *at = os_map(2 * REGION_BYTES, false);
    if (at == NULL) return false;
    char *region = (char *)(((uintptr_t)at + REGION_BYTES - 1) & ~(REGION_BYTES - 1));
    if (region > at) os_unmap(at, (size_t)(region - at));
    if (region < at + REGION_BYTES)
        os_unmap(region + REGION_BYTES, (size_t)(at + REGION_BYTES - region));
    size_t i = (uintptr_t)region >> REGION_SHIFT;
    if (i >= REGION_TABLE) {
        os_unmap(region, REGION_BYTES);
        return false;
    }
    os_no_huge(region, REGION_BYTES);
    store_rlx(&span_regions[i], 1); /* the class's lock publishes it with the first object */
    ((Span *)(void *)region)->next = (Span *)(void *)pool.region;
    store_rel(&pool.region, region); /* pairs with each_span */
    pool.cut = RECORD_SPANS;
    return true;
}

static Span *take_free(void) {
    Span *s = pool.free;
    if (s == NULL) return NULL;
    pool.free = s->next;
    if (--pool.nfree < pool.low) pool.low = pool.nfree;
    return s;
}

static Span *take_span(void) {
    Span *s = take_free();
    if (s != NULL) return s;
    if ((s = pool.bare) != NULL) {
        pool.bare = s->next;
        return s;
    }
    if ((pool.region == NULL || pool.cut == REGION_SPANS) && !add_region()) return NULL;
    return (Span *)(void *)pool.region + pool.cut++;
}

/* A span for a class, whose lock is held. */
static Span *span_new(uint32_t cls) {
    lock(&pool.lock, RANK_LEAF);
    Span *s = take_span();
    if (s != NULL) store_rlx(&pool.used, pool.used + 1);
    unlock(&pool.lock);
    if (s == NULL) return NULL;
    uint32_t bytes = class_bytes[cls];
    s->bytes = bytes;
    s->inverse = ((uint64_t)1 << 32) / bytes + 1;
    s->capacity = (uint32_t)(SPAN_BYTES / bytes);
    s->nfree = 0;
    s->free = NULL;
    s->listed = false;
    store_rlx(&s->carved, 0);
    store_rel(&s->cls, cls + 1); /* pairs with each_span */
    return s;
}

static void span_drop(Span *s) {
    store_rlx(&s->cls, 0);
    lock(&pool.lock, RANK_LEAF);
    s->next = pool.free;
    pool.free = s;
    pool.nfree++;
    store_rlx(&pool.used, pool.used - 1);
    unlock(&pool.lock);
}

/* ---- a class's spans; its lock --------------------------------------------------------------- */

static void list_span(Central *c, Span *s) {
    s->next = c->spans;
    s->prev = NULL;
    if (s->next) s->next->prev = s;
    c->spans = s;
    s->listed = true;
}

static void unlist_span(Central *c, Span *s) {
    *(s->prev ? &s->prev->next : &c->spans) = s->next;
    if (s->next) s->next->prev = s->prev;
    s->listed = false;
}

static Free *take_object(Span *s) {
    Free *f = s->free;
    if (f != NULL) {
        s->free = f->next;
        s->nfree--;
        return f;
    }
    f = (Free *)(void *)(span_base(s) + (size_t)s->carved * s->bytes);
    store_rlx(&s->carved, s->carved + 1);
    return f;
}

/* Gets up to n objects: how many. */
static uint32_t gather(uint32_t cls, uint32_t n, Free **list) {
    Central *c = &central[cls];
    Free **end = list;
    uint32_t got = 0;
    while (got < n) {
        Span *s = c->spans;
        if (s == NULL) {
            if ((s = span_new(cls)) == NULL) break;
            list_span(c, s);
        }
        Free *f = take_object(s);
        if (s->nfree == 0 && s->carved == s->capacity) unlist_span(c, s);
        *end = f;
        end = &f->next;
        got++;
    }
    *end = NULL;
    return got;
}

/* Back to its span. A span whose objects are all free stays only if it is the class's last. */
static void sort_back(Central *c, Free *f) {
    Span *s = record_of(f);
    f->next = s->free;
    s->free = f;
    s->nfree++;
    if (!s->listed) list_span(c, s);
    if (s->nfree == s->carved && (s->next || s->prev)) {
        unlist_span(c, s);
        span_drop(s);
    }
}

static void sort_back_list(Central *c, Free *list) {
    while (list != NULL) {
        Free *f = list;
        list = f->next;
        sort_back(c, f);
    }
}

/* ---- for the caches of the Ps, and for callers without a P ----------------------------------- */

uint32_t central_get(uint32_t cls, Free **list) {
    Central *c = &central[cls];
    uint32_t got = class_batch[cls];
    if (span_malloc_instead()) return 0;
    lock(&c->lock, RANK_STACK);
    if (c->nbatches > 0) {
        *list = c->batches[--c->nbatches];
        if (c->nbatches < c->low) c->low = c->nbatches;
    } else {
        got = gather(cls, got, list);
    }
    unlock(&c->lock);
    return got;
}

void central_put(uint32_t cls, Free *batch) {
    Central *c = &central[cls];
    lock(&c->lock, RANK_STACK);
    if (c->nbatches < BATCHES) c->batches[c->nbatches++] = batch;
    else sort_back_list(c, batch);
    unlock(&c->lock);
}

void central_put_some(uint32_t cls, Free *list) {
    if (list == NULL) return;
    lock(&central[cls].lock, RANK_STACK);
    sort_back_list(&central[cls], list);
    unlock(&central[cls].lock);
}

Free *central_get_one(uint32_t cls) {
    Central *c = &central[cls];
    if (span_malloc_instead()) return NULL;
    lock(&c->lock, RANK_STACK);
    if (c->loose == NULL) c->nloose = gather(cls, class_batch[cls], &c->loose);
    Free *f = c->loose;
    if (f != NULL) {
        c->loose = f->next;
        c->nloose--;
    }
    unlock(&c->lock);
    return f;
}

void central_put_one(uint32_t cls, Free *f) {
    Central *c = &central[cls];
    lock(&c->lock, RANK_STACK);
    if (c->nloose < 2u * class_batch[cls]) {
        f->next = c->loose;
        c->loose = f;
        c->nloose++;
    } else {
        sort_back(c, f);
    }
    unlock(&c->lock);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* Sorts back half of the batches that were idle for a second, and once none is left the loose
 * objects. Returns how many batches are left. */
static uint32_t sort_idle(Central *c) {
    if (load_rlx(&c->nbatches) == 0 && load_rlx(&c->nloose) == 0) return 0;
    lock(&c->lock, RANK_STACK);
    for (uint32_t n = (c->low + 1) / 2; n > 0 && c->nbatches > 0; n--)
        sort_back_list(c, c->batches[--c->nbatches]);
    c->low = c->nbatches;
    if (c->nbatches == 0) {
        sort_back_list(c, c->loose);
        c->loose = NULL;
        c->nloose = 0;
    }
    uint32_t left = c->nbatches;
    unlock(&c->lock);
    return left;
}

uint64_t span_scavenge(void) {
    if (load_rlx(&pool.region) == NULL) return 0;
    uint64_t left = 0;
    for (uint32_t cls = 0; cls < SIZE_CLASSES; cls++) left += sort_idle(&central[cls]);
    for (uint32_t n = load_rlx(&pool.low); n > 0; n--) {
        lock(&pool.lock, RANK_LEAF);
        Span *s = take_free();
        unlock(&pool.lock);
        if (s == NULL) break;
        os_discard(span_base(s), SPAN_BYTES);
        lock(&pool.lock, RANK_LEAF);
        s->next = pool.bare;
        pool.bare = s;
        unlock(&pool.lock);
    }
    lock(&pool.lock, RANK_LEAF);
    pool.low = pool.nfree;
    unlock(&pool.lock);
    return left + load_rlx(&pool.nfree);
}

uint64_t span_bytes_used(void) { return load_rlx(&pool.used) << SPAN_SHIFT; }
uint64_t span_bytes_idle(void) { return (uint64_t)load_rlx(&pool.nfree) << SPAN_SHIFT; }

void each_span(void (*fn)(void *lo, void *hi)) {
    for (Span *region = (Span *)(void *)load_acq(&pool.region); region; region = region->next) {
        for (size_t i = RECORD_SPANS; i < REGION_SPANS; i++) {
            Span *s = &region[i];
            if (load_acq(&s->cls) == 0) continue;
            char *lo = span_base(s);
            fn(lo, lo + (size_t)load_rlx(&s->carved) * s->bytes);
        }
    }
}

/* A program with a sanitizer may be linked with a library without. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __lsan_init(void) __attribute__((weak));

bool span_malloc_instead(void) {
#if defined(GORT_ASAN) || defined(GORT_TSAN)
    return true;
#else
    static uint8_t known; /* atomic: 0: not asked yet, 1: no, 2: yes */
    uint8_t k = load_rlx(&known);
    if (unlikely(k == 0)) {
        k = __asan_init || __tsan_init || __lsan_init || valgrind_runs() ? 2 : 1;
        store_rlx(&known, k);
    }
    return k == 2;
#endif
}

void span_fork(bool before) {
    for (uint32_t cls = 0; cls < SIZE_CLASSES; cls++)
        if (before) lock(&central[cls].lock, RANK_STACK);
        else unlock(&central[cls].lock);
    if (before) lock(&pool.lock, RANK_LEAF);
    else unlock(&pool.lock);
}
