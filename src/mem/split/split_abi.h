/* The calls of libgort_split.a into the library (split.c), for no other caller. */
#ifndef SPLIT_ABI_H
#define SPLIT_ABI_H

#include <stddef.h>
#include <stdint.h>

struct Segment;
typedef struct Space {
    uintptr_t at;
    size_t drop; /* how far the caller's stack pointer is to be lowered */
} Space;

uintptr_t gort_split_grow(size_t frame, size_t bytes, uintptr_t *fp, size_t libc);
void gort_split_shrink(struct Segment *seg);
Space gort_split_space(size_t n, uintptr_t sp);
void gort_split_linked(const void *morestack, const void *end, const void *probe);

#endif
