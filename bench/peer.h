/*
 * What the programs of the peers share: the count, the number of threads, the table, main.
 *
 *     peer_NAME WORKLOAD [N]     prints lines `name value unit`; N replaces the default count
 *     peer_NAME all [N]
 *     peer_NAME list             the workloads that it has with this number of threads
 *     WORKERS=1|2                the number of threads that run them
 *
 * A workload does what its namesake in bench.c does, and the clock covers the same. Each is written
 * as the peer's own documents and tests write it, in the form that was fastest here. Where the peer
 * has no such thing as the workload needs, it has no such workload: nothing is built for it out of
 * other parts, but for one. A round trip and a buffer out of the peer's own mutex and condition
 * stand in for channels (as among the pthreads), and in skynet a join for the sum over a channel.
 * Counts are smaller than bench.c's where the peer is slow: a figure is per operation.
 *
 * bench/run asks for `list`, so that nothing else has to know what a peer can do.
 */
#ifndef PEER_H
#define PEER_H

#include "bench.h"

typedef struct Workload {
    const char *name;
    void (*run)(void);
    int most; /* threads at which it is measured; 0: any number */
} Workload;

static int64_t arg_n;

static inline int64_t count(int64_t preset) { return arg_n > 0 ? arg_n : preset; }

static inline int workers(void) {
    const char *s = getenv("WORKERS");
    return s && atoi(s) > 0 ? atoi(s) : 1;
}

static inline void expect(int64_t got, int64_t want, const char *what) {
    if (got == want) return;
    fprintf(stderr, "%s: wrong: %lld, not %lld\n", what, (long long)got, (long long)want);
    exit(1);
}

/* The figures of `memory`: parked ones that have just been started since t0. */
static inline void report_parked(int64_t t0, int64_t n, long before) {
    struct timespec settle = {0, 20000000};
    report_nsop("memory_create", t0, n);
    nanosleep(&settle, NULL);
    report("memory_rss", (double)(proc_field("VmRSS") - before) * 1024 / (double)n, "B/goroutine");
}

/* `list` is answered before the peer's runtime is started. */
static inline int peer_lists(const Workload *w, size_t n, int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "list")) return 0;
    for (size_t i = 0; i < n; i++)
        if (!w[i].most || workers() <= w[i].most) printf("%s\n", w[i].name);
    return 1;
}

static inline int peer_runs(const Workload *w, size_t n, int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    int found = 0;
    arg_n = argc > 2 ? atoll(argv[2]) : 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name, "all") && strcmp(name, w[i].name)) continue;
        w[i].run();
        found = 1;
    }
    if (!found) fprintf(stderr, "usage: %s list|all|WORKLOAD [N]\n", argc ? argv[0] : "peer");
    return found ? 0 : 2;
}

#endif
