/* Spans from inside: size classes, where objects lie, batches, the way of a span through the pool
 * and of its pages back to the system. */
#include "sched/alloc.h"
#include "sched/sched.h"
#include "mem/span.h"
#include "../lib/test.h"

#include <sys/mman.h>

enum { MANY = 200000 };

static void classes(void) {
    for (size_t size = 0; size <= SMALL_MAX; size++) {
        uint32_t cls = size_class(size);
        CHECK_LT(cls, SIZE_CLASSES);
        CHECK_GE(class_bytes[cls], size);
        if (cls > 0) CHECK_LT(class_bytes[cls - 1], size); /* no smaller one would do */
        if (size > 112) CHECK_EQ(class_bytes[cls] % CACHE_LINE, 0);
        if (size > 16) CHECK_LE(class_bytes[cls], size + size / 2 + 15);
    }
    for (int i = 0; i < SIZE_CLASSES; i++) CHECK(class_batch[i] > 0 && class_bytes[i] % 16 == 0);
}

/* Every object begins in its span where its class says, and nowhere else does one. */
static void places(void) {
    for (uint32_t cls = 0; cls < SIZE_CLASSES; cls++) {
        Free *f = central_get_one(cls);
        CHECK(f != NULL);
        Span *s = span_of(f);
        CHECK(s != NULL && s == record_of(f));
        char *base = (char *)((uintptr_t)f & ~(SPAN_BYTES - 1));
        CHECK_EQ(s->capacity, SPAN_BYTES / class_bytes[cls]);
        for (uint32_t i = 0; i < s->capacity; i++) {
            CHECK_EQ(span_class_checked(s, base + (size_t)i * class_bytes[cls]), cls);
            CHECK(span_of(base + (size_t)(i + 1) * class_bytes[cls] - 1) == s);
        }
        central_put_one(cls, f);
    }
    int local;
    CHECK(span_of(NULL) == NULL && span_of(&local) == NULL &&
          span_of((void *)~(uintptr_t)0) == NULL);
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* A batch goes in and comes out whole; objects are never given out twice. */
enum { TAKEN = 64 };
static Free *lists[TAKEN];
static void take_batches(uint32_t cls) {
    static uintptr_t seen[TAKEN * 32];
    uint32_t n = 0;
    for (int i = 0; i < TAKEN; i++) {
        CHECK_EQ(central_get(cls, &lists[i]), class_batch[cls]);
        for (Free *f = lists[i]; f; f = f->next) seen[n++] = (uintptr_t)f;
    }
    CHECK_EQ(n, TAKEN * class_batch[cls]);
    qsort(seen, n, sizeof seen[0], by_address);
    for (uint32_t i = 1; i < n; i++) CHECK_GE(seen[i] - seen[i - 1], class_bytes[cls]);
}

static void batches(void) {
    uint32_t cls = size_class(64);
    for (int round = 0; round < 3; round++) {
        take_batches(cls);
        for (int i = 0; i < TAKEN; i++) central_put(cls, lists[i]);
    }
}

/* Whoever has a P uses its cache, and what is in there comes back when the P goes away. */
static void cache(void) {
    static P p;
    void *at[500];
    M *m = enter();
    uint64_t before = span_bytes_used();
    m->p = &p;
    p.m = m;
    for (int i = 0; i < 500; i++) at[i] = gort_alloc(1000);
    for (int i = 0; i < 500; i++) gort_free(at[i]);
    for (int i = 0; i < 6; i++) CHECK(gort_alloc(1000) == at[499 - i]); /* last in, first out */
    for (int i = 0; i < 6; i++) gort_free(at[494 + i]);
    CHECK_EQ(p.n.allocs, 506);
    CHECK_EQ(p.n.frees, 506);
    alloc_flush(&p);
    m->p = NULL;
    while (span_scavenge() != 0) {}
    CHECK_LE(span_bytes_used(), before + SPAN_BYTES);
    for (int i = 0; i < 500; i++) {
        Span *s = record_of(at[i]);
        CHECK(s->cls == 0 || s->nfree == s->carved); /* all are back */
    }
    leave(m);
}

static uint64_t resident(const char *lo, size_t bytes) {
    unsigned char pages[SPAN_BYTES / 4096];
    uint64_t n = 0;
    if (mincore((void *)lo, bytes, pages) != 0) return 0;
    for (size_t i = 0; i < sizeof pages; i++) n += pages[i] & 1;
    return n;
}

static void *objects[MANY];
static uint64_t resident_all(void) {
    uint64_t n = 0;
    const char *last = NULL;
    for (int i = 0; i < MANY; i++) {
        const char *base = (const char *)((uintptr_t)objects[i] & ~(SPAN_BYTES - 1));
        if (base != last) n += resident(base, SPAN_BYTES);
        last = base;
    }
    return n;
}

/* What a burst has used goes back: first to the pool, then to the system. */
static void giving_back(void) {
    uint64_t before = span_bytes_used();
    for (int i = 0; i < MANY; i++) {
        objects[i] = gort_alloc(256);
        memset(objects[i], 1, 256);
    }
    CHECK_GE(span_bytes_used() - before + 2 * SPAN_BYTES, (uint64_t)MANY * 256);
    uint64_t touched = resident_all();
    CHECK_GE(touched, (uint64_t)MANY * 256 / 4096);
    for (int i = 0; i < MANY; i++) gort_free(objects[i]);
    CHECK_LE(span_bytes_used(), before + 2 * SPAN_BYTES);
    CHECK_GE(span_bytes_idle() + 4 * SPAN_BYTES, (uint64_t)MANY * 256);
    M *m = enter();
    for (int i = 0; i < 40 && span_scavenge() != 0; i++) {}
    CHECK_EQ(span_scavenge(), 0);
    leave(m);
    CHECK_EQ(span_bytes_idle(), 0);
    CHECK_LE(resident_all(), touched / 20);
    for (int i = 0; i < MANY; i++) objects[i] = gort_alloc(256); /* and is used again */
    CHECK_LE(span_bytes_used() - before, (uint64_t)MANY * 256 + 2 * SPAN_BYTES);
    for (int i = 0; i < MANY; i++) gort_free(objects[i]);
}

static uint64_t spanned;
static void add_span(void *lo, void *hi) {
    CHECK((char *)hi >= (char *)lo && (char *)hi <= (char *)lo + SPAN_BYTES);
    spanned += (uint64_t)((char *)hi - (char *)lo);
}

int main(void) {
    if (span_malloc_instead()) SKIP("a sanitizer watches: objects are malloc's");
    M *m = enter();
    classes();
    places();
    batches();
    leave(m);
    cache();
    giving_back();
    char *last = gort_alloc(4096);
    each_span(add_span);
    CHECK(spanned >= 4096 && spanned <= span_bytes_used());
    gort_free(last);
    return 0;
}
