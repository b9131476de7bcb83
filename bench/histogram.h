/* Latencies of a client: 32 buckets for each power of two, so within 3 %. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

typedef struct Histogram {
    uint64_t count, buckets[64 * 32];
} Histogram;

static inline unsigned histogram_bucket(uint64_t ns) {
    if (ns < 32) return (unsigned)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns);
    return (top - 4) * 32 + (unsigned)(ns >> (top - 5) & 31);
}

static inline double histogram_value(unsigned b) {
    if (b < 32) return b;
    unsigned top = b / 32 + 4;
    return (double)((UINT64_C(32) + b % 32) << (top - 5));
}

static inline void histogram_add(Histogram *h, int64_t ns) {
    h->count++;
    h->buckets[histogram_bucket((uint64_t)ns)]++;
}

/* The p-quantile in microseconds. */
static inline double histogram_us(const Histogram *h, double p) {
    uint64_t want = (uint64_t)(p * (double)(h->count - 1)), seen = 0;
    for (unsigned b = 0; h->count > 0 && b < 64 * 32; b++)
        if ((seen += h->buckets[b]) > want) return histogram_value(b) / 1e3;
    return 0;
}

#endif
