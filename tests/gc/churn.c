/* Many megabytes (the argument) through 1,000 goroutines whose only roots are their stacks: lists
 * are built, carried over parks, sleeps, threads and collections, and checked. Nothing live is
 * freed, and the heap stays small. */
#include <gc.h>
#include "../lib/test.h"

enum { GOROUTINES = 1000, LENGTH = 40 };

typedef struct Node {
    struct Node *next;
    uint64_t check;
    char fill[48];
} Node;

static uint64_t rounds; /* of each goroutine */
static gort_chan *meet;
static gort_mutex table;

static uint64_t expected(uint64_t owner, uint64_t i) {
    return (owner << 32 | i) * 0x9E3779B97F4A7C15u;
}

__attribute__((noinline)) static Node *build(uint64_t owner) {
    Node *list = NULL;
    for (uint64_t i = 0; i < LENGTH; i++) {
        Node *n = GC_MALLOC(sizeof *n);
        CHECK(n != NULL);
        n->check = expected(owner, i);
        n->next = list;
        list = n;
    }
    return list;
}

__attribute__((noinline)) static void verify(Node *list, uint64_t owner) {
    for (uint64_t i = LENGTH; i-- > 0; list = list->next)
        CHECKF(list && list->check == expected(owner, i), "node %d of goroutine %d", (int)i,
               (int)owner);
    CHECK(list == NULL);
}

static long nap(void *arg) {
    Node *list = build((uint64_t)(uintptr_t)arg); /* allocates without a P */
    verify(list, (uint64_t)(uintptr_t)arg);
    return 0;
}

/* One of the ways to leave the stack, or to stay. */
static void rest(uint64_t r, uint64_t owner) {
    switch (r % 16) {
    case 0: gort_sleep((int64_t)(r >> 8 & 0xfffff)); break;
    case 1:
    case 2: gort_yield(); break;
    case 3: gort_chan_try_send(meet, NULL); break;
    case 4: gort_chan_try_recv(meet, NULL); break;
    case 5:
        gort_mutex_lock(&table);
        gort_yield();
        gort_mutex_unlock(&table);
        break;
    case 6:
        if (r >> 32 & 7) gort_yield();
        else gort_blocking(nap, (void *)(uintptr_t)owner);
        break;
    default: break;
    }
}

static void member(void *arg) {
    uint64_t owner = (uint64_t)(uintptr_t)arg, seed = owner + 1;
    Node *kept = build(owner);
    for (uint64_t i = 0; i < rounds; i++) {
        Node *list = build(owner);
        rest(test_random(&seed), owner);
        verify(list, owner);
        if (i % 8 == 0) {
            verify(kept, owner);
            kept = list;
        }
    }
    verify(kept, owner);
}

static int body(int argc, char **argv) {
    uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 0) : 100) << 20;
    gort_wg wg = {0};
    rounds = bytes / (GOROUTINES * LENGTH * sizeof(Node)) + 1;
    meet = gort_chan_new(0, 0);
    for (uintptr_t i = 1; i <= GOROUTINES; i++) CHECK_EQ(gort_wg_go(&wg, member, (void *)i), 0);
    gort_wg_wait(&wg);
    printf("%zu MB allocated, heap %zu MB, %lu collections\n", GC_get_total_bytes() >> 20,
           GC_get_heap_size() >> 20, (unsigned long)GC_get_gc_no());
    CHECK_GE(GC_get_total_bytes(), bytes);
    CHECK_LE(GC_get_heap_size(), (size_t)200 << 20); /* live: 3 lists of 2.5 KB for each */
    CHECK_GE(GC_get_gc_no(), 2);
    gort_chan_release(meet);
    return 0;
}

int main(int argc, char **argv) {
    GC_INIT();
    return gort_main(body, argc, argv);
}
