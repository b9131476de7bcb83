/* Heap sort: in place, no recursion, no quadratic case. */
#ifndef SORT_H
#define SORT_H

#include "base/base.h"

/* n records of `size` bytes, at most 64, each of which begins with its key, a uint64_t. */
void sort_records(void *records, uint32_t n, size_t size);

#endif
