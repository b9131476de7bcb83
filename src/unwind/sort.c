/* Sorting for tables that are read where nothing may be allocated (sort.h). */
#include "unwind/sort.h"

typedef struct Heap {
    char *at;
    size_t size;
} Heap;

static char *heap_at(const Heap *h, uint32_t i) { return h->at + i * h->size; }

static uint64_t heap_key(const char *record) {
    uint64_t key;
    memcpy(&key, record, sizeof key);
    return key;
}

static void heap_sift(const Heap *h, uint32_t root, uint32_t n) {
    char moving[64];
    memcpy(moving, heap_at(h, root), h->size);
    for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && heap_key(heap_at(h, child + 1)) > heap_key(heap_at(h, child))) child++;
        if (heap_key(heap_at(h, child)) <= heap_key(moving)) break;
        memcpy(heap_at(h, root), heap_at(h, child), h->size);
    }
    memcpy(heap_at(h, root), moving, h->size);
}

void sort_records(void *records, uint32_t n, size_t size) {
    const Heap h = {records, size};
    char top[64];
    for (uint32_t i = n / 2; i-- > 0;) heap_sift(&h, i, n);
    for (uint32_t i = n; i-- > 1;) {
        memcpy(top, heap_at(&h, 0), size);
        memcpy(heap_at(&h, 0), heap_at(&h, i), size);
        memcpy(heap_at(&h, i), top, size);
        heap_sift(&h, 0, i);
    }
}
