/* A goroutine that computes without a call gives way: main gets its turn beside endless loops, and
 * whoever is stopped goes on with every register, errno and lock as they were. */
#define _GNU_SOURCE
#include "../lib/test.h"
#include <stdlib.h>

static volatile int stop;
static gort_wg wg;

static uint64_t preemptions(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.preemptions;
}

/* ---- kinds of loops ------------------------------------------------------------------------- */

static void loops(void *arg) {
    while (!stop) continue;
    gort_wg_done(&wg);
}

/* Integers and doubles in registers, over and over the same sum. */
static void computes(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg + 1;
    while (!stop) {
        uint64_t x = seed, y = seed;
        double d = (double)seed, e = (double)seed;
        for (int i = 0; i < 100000; i++) {
            x = x * 6364136223846793005u + 1;
            d = d * 0.999 + 1.0;
        }
        for (int i = 0; i < 100000; i++) {
            y = y * 6364136223846793005u + 1;
            e = e * 0.999 + 1.0;
        }
        CHECK_EQ(x, y);
        CHECK(d == e);
    }
    gort_wg_done(&wg);
}

static void allocates(void *arg) {
    unsigned char *held[16] = {0};
    for (unsigned i = 0; !stop; i++) {
        unsigned k = i % 16;
        if (held[k]) CHECK_EQ(held[k][k], k);
        free(held[k]);
        held[k] = malloc(16 + i % 700);
        held[k][k] = (unsigned char)k;
    }
    for (int k = 0; k < 16; k++) free(held[k]);
    gort_wg_done(&wg);
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void sorts(void *arg) {
    int v[500];
    while (!stop) {
        for (int i = 0; i < 500; i++) v[i] = (i * 7919) % 500;
        qsort(v, 500, sizeof v[0], ascending);
        for (int i = 0; i < 500; i++) CHECK_EQ(v[i], i);
    }
    gort_wg_done(&wg);
}

static void keeps_errno(void *arg) {
    int mine = (int)(intptr_t)arg + 1000;
    errno = mine;
    while (!stop)
        for (volatile int i = 0; i < 1000; i++)
            if (i % 100 == 0) CHECK_EQ(errno, mine);
    gort_wg_done(&wg);
}

/* Each kind on more goroutines than Ps, until it has been stopped that often. Under valgrind once:
 * the threads that compute there stand in a queue for its only lock, to the monitor they sleep, and
 * a sleeper gets no signal. */
static void until_preempted(gort_fn *fn, uint64_t times) {
    if (test_valgrind()) times = 1;
    int n = gort_maxprocs(0) + 2;
    uint64_t since = preemptions();
    stop = 0;
    gort_wg_add(&wg, n);
    for (intptr_t i = 0; i < n; i++) CHECK_EQ(gort_go(fn, (void *)i), 0);
    while (preemptions() - since < times) gort_yield();
    stop = 1;
    gort_wg_wait(&wg);
}

/* ---- what forbids it ------------------------------------------------------------------------- */

static volatile int ran;
static void other(void *arg) { ran = 1; }

/* Long enough for many ticks of the monitor; no call, since that would be a way out of here. */
GORT_NOPREEMPT static void undisturbed(void) {
    for (volatile long i = 0; i < 60000000; i++) continue;
}

static void not_in_there(void) {
    if (gort_maxprocs(0) != 1) return; /* another P would run the other at once */
    for (int tries = 0; tries < 3; tries++) {
        gort_yield(); /* a new slice */
        ran = 0;
        CHECK_EQ(gort_go(other, NULL), 0);
        undisturbed();
        int in_time = ran; /* at the earliest on the way out of the function */
        while (!ran) gort_yield();
        if (!in_time) return;
    }
    FAILF("preempted in a GORT_NOPREEMPT function, three times");
}

static int body(int argc, char **argv) {
    until_preempted(loops, 5);
    until_preempted(computes, 10);
    until_preempted(allocates, 10);
    until_preempted(sorts, 10);
    until_preempted(keeps_errno, 10);
    not_in_there();
    return 0;
}

int main(int argc, char **argv) {
#ifdef __SANITIZE_THREAD__
    SKIP("TSan holds signals back until the next call");
#endif
    return gort_main(body, argc, argv);
}
