/*
 * Curves: the cost of one operation must stay flat while goroutines and Ps grow.
 *
 *     scale_g [TOTAL]   1 to 10^6 goroutines, TOTAL operations at every point
 *     scale_p [TOTAL]   1 to 64 Ps on the cores there are, 1,000 goroutines
 *
 * Each point is a name of its own, scale_g_yield_1000 for instance, so that the reader of the
 * figures needs no other form. TOTAL is shared out, so that every point takes about as long. The
 * goroutines of yield and chan exist and have run before the clock starts: what a first page of a
 * stack costs is in `memory`, not in here. gort_maxprocs changes the Ps in the running process:
 * that it can is part of what is measured.
 */
#include "bench.h"
#include "workloads.h"

#include <stdatomic.h>

struct yielders {
    gort_wg wg;
    _Atomic int64_t started;
    _Atomic int off; /* the clock runs */
    int64_t n;
};

static void yields(void *arg) {
    struct yielders *y = arg;
    atomic_fetch_add(&y->started, 1);
    while (!atomic_load(&y->off)) gort_yield();
    for (int64_t n = y->n; n > 0; n--) gort_yield();
    gort_wg_done(&y->wg);
}

static void yield_among_warm(const char *name, int64_t g, int64_t n) {
    struct yielders y = {.n = n};
    gort_wg_add(&y.wg, (int)g);
    for (int64_t i = 0; i < g; i++) go(yields, &y);
    while (atomic_load(&y.started) < g) gort_yield();
    int64_t t0 = now_ns();
    atomic_store(&y.off, 1);
    gort_wg_wait(&y.wg);
    report_nsop(name, t0, g * n);
}

static void rounds(void *arg) {
    gort_chan **c = arg;
    int64_t v;
    while (!gort_chan_recv(c[0], &v)) gort_chan_send(c[1], &v);
}

/* g goroutines wait on one channel for values and send them back on another: each round trip
 * wakes a goroutine that has been parked for g round trips. */
static void chan_among(const char *name, int64_t g, int64_t n) {
    gort_chan *c[2] = {ints(0), ints(0)};
    gort_wg wg = {0};
    int64_t v = 0;
    for (int64_t i = 0; i < g; i++)
        if (gort_wg_go(&wg, rounds, c)) wrong(name, i);
    for (int64_t i = 0; i < g; i++) gort_chan_send(c[0], &v), gort_chan_recv(c[1], &v);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        gort_chan_send(c[0], &i);
        gort_chan_recv(c[1], &v);
    }
    report_nsop(name, t0, n);
    gort_chan_close(c[0]);
    gort_wg_wait(&wg);
    gort_chan_release(c[0]);
    gort_chan_release(c[1]);
}

static void point(const char *curve, int64_t x, int64_t g, int64_t total) {
    char name[64];
    int64_t each = total / g > 0 ? total / g : 1;
    snprintf(name, sizeof name, "%s_yield_%lld", curve, (long long)x);
    yield_among_warm(name, g, each < 5 ? 5 : each);
    snprintf(name, sizeof name, "%s_spawn_%lld", curve, (long long)x);
    spawn_in_batches(name, each * g, g);
    snprintf(name, sizeof name, "%s_chan_%lld", curve, (long long)x);
    chan_among(name, g, total);
}

void scale_goroutines(void) {
    int64_t total = count(1000000);
    for (int64_t g = 1; g <= 1000000 && (g <= total || g == 1); g *= 10)
        point("scale_g", g, g, total);
}

void scale_procs(void) {
    int64_t total = count(1000000);
    int before = gort_maxprocs(0);
    for (int p = 1; p <= 64; p *= 2) {
        gort_maxprocs(p);
        point("scale_p", p, 1000, total);
    }
    gort_maxprocs(before);
}
