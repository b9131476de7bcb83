/*
 * What the benchmark programs share: printing a figure, counting, percentiles.
 *
 * Every program here prints lines of the form `name value unit`, one figure each, nothing else
 * on stdout; bench/run reads them. Names are the same in gort's program, in its Go twin and, where
 * there is one, among the floors and the pthreads, so that a ratio is a matter of equal names.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static inline void report(const char *name, double value, const char *unit) {
    printf("%s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

static inline void report_nsop(const char *name, int64_t t0, int64_t ops) {
    int64_t spent = now_ns() - t0; /* before anything else: printing is not part of it */
    report(name, (double)spent / (double)ops, "ns/op");
}

static inline void report_ms(const char *name, int64_t t0) {
    int64_t spent = now_ns() - t0;
    report(name, (double)spent / 1e6, "ms");
}

static inline double cpu_seconds(void) {
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* A number of /proc/self/status: VmRSS (kB), Threads, ... 0 where there is none. */
static inline long proc_field(const char *key) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    size_t len = strlen(key);
    long value = 0;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, len) && line[len] == ':') value = atol(line + len + 1);
    if (f) fclose(f);
    return value;
}

static inline int by_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The p-quantile of a sorted array of nanoseconds, in microseconds. */
static inline double quantile_us(const int64_t *sorted, size_t n, double p) {
    return (double)sorted[(size_t)(p * (double)(n - 1))] / 1e3;
}

/* Sorts, then prints NAME_p50, NAME_p99 and NAME_max. */
static inline void report_late(const char *name, int64_t *v, size_t n) {
    static const struct {
        const char *suffix;
        double p;
    } q[] = {{"p50", .5}, {"p99", .99}, {"max", 1}};
    qsort(v, n, sizeof *v, by_int64);
    for (int i = 0; i < 3; i++) {
        char full[128];
        snprintf(full, sizeof full, "%s_%s", name, q[i].suffix);
        report(full, quantile_us(v, n, q[i].p), "us");
    }
}

static inline void *must(void *p) {
    if (!p) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    return p;
}

/* A small generator of its own, so that a run draws the same numbers everywhere. */
static inline uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

#endif
