/*
 * The table of sleepers with very many objects: whatever their addresses have in common, each is
 * found in some dozens of steps, in whatever order they come and go; and each key's sleepers are a
 * FIFO, also where the first, the last or one in the middle leaves.
 */
#include "sync/sema.h"

#include "../lib/test.h"

enum { KEYS = 100000, MOST_STEPS = 60 };
static Sleeper sleepers[KEYS];
static G nobody;

static const void *key_of(size_t i, size_t stride) {
    return (const void *)(0x7f0000000000 + i * stride);
}

/* Steps from the root to the key's first sleeper; -1: it is not there. */
static int steps_to(const void *key) {
    int n = 0;
    Sleeper *s = sema_bucket(key)->root;
    for (uint64_t bits = sema_hash(key); s != NULL && s->key != key; bits <<= 1, n++)
        s = s->below[bits >> 63];
    return s ? n : -1;
}

static void push(Sleeper *s, const void *key, bool front) {
    *s = (Sleeper){.gp = &nobody};
    sema_push(sema_bucket(key), s, key, front);
}

static void many(size_t stride, size_t step) {
    for (size_t i = 0; i < KEYS; i++) push(&sleepers[i], key_of(i, stride), false);
    for (size_t i = 0; i < KEYS; i++) {
        int n = steps_to(key_of(i, stride));
        CHECKF(n >= 0 && n <= MOST_STEPS, "stride %zu: key %zu is %d steps away", stride, i, n);
    }
    /* every key once, in another order, for step and KEYS have no common divisor */
    for (size_t i = 0, k = 0; i < KEYS; i++, k = (k + step) % KEYS) {
        const void *key = key_of(k, stride);
        bool more = true;
        if (i % 2) CHECK(sema_pop(sema_bucket(key), key, &more) == &sleepers[k] && !more);
        else sema_remove(sema_bucket(key), &sleepers[k]);
        CHECK_EQ(steps_to(key), -1);
        size_t later = (k + step) % KEYS;
        if (i + 1 < KEYS) CHECK_GE(steps_to(key_of(later, stride)), 0);
    }
    for (size_t i = 0; i < SEMA_BUCKETS; i++) CHECK(sema_table[i].root == NULL);
}

static Sleeper *pop(const void *key, bool expect_more) {
    bool more;
    Sleeper *s = sema_pop(sema_bucket(key), key, &more);
    CHECK_EQ(more, expect_more);
    return s;
}

static void fifo(const void *key) {
    Sleeper *s = sleepers;
    for (int i = 0; i < 6; i++) push(&s[i], key, false);
    push(&s[6], key, true);
    sema_remove(sema_bucket(key), &s[0]); /* the second */
    sema_remove(sema_bucket(key), &s[3]); /* in the middle */
    sema_remove(sema_bucket(key), &s[5]); /* the last */
    sema_remove(sema_bucket(key), &s[6]); /* the first */
    push(&s[7], key, false);
    CHECK(pop(key, true) == &s[1]);
    CHECK(pop(key, true) == &s[2]);
    CHECK(pop(key, true) == &s[4]);
    CHECK(pop(key, false) == &s[7]);
    CHECK(pop(key, false) == NULL);
}

int main(void) {
    static const size_t strides[] = {4, 8, 40, 64, 2008, 4096, 65536, 1 << 20};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        many(strides[i], i % 2 ? 1 : 70001);
    for (int i = 0; i < 300; i++) push(&sleepers[100 + i], key_of((size_t)i, 8), false);
    for (int i = 0; i < 300; i += 7) { /* among others in their buckets */
        sema_remove(sema_bucket(key_of((size_t)i, 8)), &sleepers[100 + i]);
        fifo(key_of((size_t)i, 8));
    }
    return 0;
}
