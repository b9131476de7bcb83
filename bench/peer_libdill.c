/*
 * libdill on the workloads that it can express: its coroutines run in one thread, and channels
 * have no buffer. It has no mutex and needs none. The million leaves of skynet would be alive at
 * once, which its mapped stacks do not allow.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "peer.h"

#define DILL_DISABLE_RAW_NAMES
#include <libdill.h>

#define ROUTINE static dill_coroutine void

ROUTINE yielder(int64_t n) {
    while (n-- > 0) dill_yield();
}

static void yield_among(const char *name, int g, int64_t n) {
    int64_t t0 = now_ns();
    int all = dill_bundle();
    for (int i = 0; i < g; i++) dill_bundle_go(all, yielder(n));
    dill_bundle_wait(all, -1);
    report_nsop(name, t0, g * n);
    dill_hclose(all);
}

static void d_yield(void) { yield_among("yield", 2, count(3000000)); }
static void d_yield1k(void) { yield_among("yield1k", 1000, count(5000)); }

ROUTINE nothing(void) {}

static void d_spawn(void) {
    int64_t n = count(1000000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) {
        int all = dill_bundle();
        for (int i = 0; i < 1000; i++) dill_bundle_go(all, nothing());
        dill_bundle_wait(all, -1);
        dill_hclose(all);
    }
    report_nsop("spawn", t0, n);
}

ROUTINE ponger(int ch) {
    int64_t v;
    while (!dill_chrecv(ch, &v, sizeof v, -1)) dill_chsend(ch, &v, sizeof v, -1);
}

static void d_pingpong(void) {
    int64_t n = count(1000000), back = 0;
    int ends[2]; /* a channel has two directions */
    if (dill_chmake(ends)) exit(1);
    int other = dill_go(ponger(ends[0]));
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        dill_chsend(ends[1], &i, sizeof i, -1);
        dill_chrecv(ends[1], &back, sizeof back, -1);
    }
    report_nsop("pingpong", t0, n);
    expect(back, n - 1, "pingpong");
    dill_hclose(other);
    dill_hclose(ends[0]);
    dill_hclose(ends[1]);
}

ROUTINE producer(int ch, int64_t n) {
    for (int64_t i = 0; i < n; i++) dill_chsend(ch, &i, sizeof i, -1);
}

static void d_select(void) {
    int64_t n = count(2000000) & ~INT64_C(1), v = 0, w = 0, sum = 0;
    int a[2], b[2];
    if (dill_chmake(a) || dill_chmake(b)) exit(1);
    int64_t t0 = now_ns();
    int one = dill_go(producer(a[0], n / 2)), two = dill_go(producer(b[0], n / 2));
    struct dill_chclause cases[] = {{DILL_CHRECV, a[1], &v, sizeof v},
                                    {DILL_CHRECV, b[1], &w, sizeof w}};
    for (int64_t i = 0; i < n; i++) sum += dill_choose(cases, 2, -1) ? w : v;
    report_nsop("select", t0, n);
    expect(sum, (n / 2) * (n / 2 - 1), "select");
    dill_hclose(one), dill_hclose(two);
    for (int i = 0; i < 2; i++) dill_hclose(a[i]), dill_hclose(b[i]);
}

ROUTINE parked(int ch) {
    int64_t v;
    dill_chrecv(ch, &v, sizeof v, -1);
}

/* Each stack and its guard are two mappings, of which the kernel allows 65,530. */
static void d_memory(void) {
    int64_t n = count(20000);
    int ends[2];
    if (dill_chmake(ends)) exit(1);
    long before = proc_field("VmRSS");
    int64_t t0 = now_ns();
    int all = dill_bundle();
    for (int64_t i = 0; i < n; i++)
        if (dill_bundle_go(all, parked(ends[0])) < 0) exit(1);
    report_parked(t0, n, before);
    t0 = now_ns();
    dill_chdone(ends[1]);
    dill_bundle_wait(all, -1);
    report_nsop("memory_teardown", t0, n);
    dill_hclose(all);
    dill_hclose(ends[0]);
    dill_hclose(ends[1]);
}

static const Workload workloads[] = {
    {"yield", d_yield, 1},       {"yield1k", d_yield1k, 1}, {"spawn", d_spawn, 1},
    {"pingpong", d_pingpong, 1}, {"select", d_select, 1},   {"memory", d_memory, 1},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    return peer_lists(workloads, WORKLOADS, argc, argv)
               ? 0
               : peer_runs(workloads, WORKLOADS, argc, argv);
}
