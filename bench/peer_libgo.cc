/*
 * libgo: coroutines on processers (its word), each with a thread; a dispatcher thread moves them
 * from the loaded to the idle. There are no joins: a channel or a counter tells the end.
 */
#include "peer.h"

#include <atomic>
#include <libgo/coroutine.h>
#include <unistd.h>

typedef co_chan<int64_t> Chan;

/* n that run fn; the last one to end tells it. The time before. */
template <class F> static int64_t all_of(int64_t n, F fn) {
    std::atomic<int64_t> left{n};
    co_chan<bool> done(1);
    int64_t t0 = now_ns();
    auto one = [&left, done, fn] {
        fn();
        if (--left == 0) done << true;
    };
    for (int64_t i = 0; i < n; i++) go one;
    bool end;
    done >> end;
    return t0;
}

static void yield_among(const char *name, int64_t g, int64_t n) {
    int64_t t0 = all_of(g, [n] {
        for (int64_t i = 0; i < n; i++) co_yield;
    });
    report_nsop(name, t0, g * n);
}

static void g_yield() { yield_among("yield", 2, count(3000000)); }
static void g_yield1k() { yield_among("yield1k", 1000, count(5000)); }

static void g_spawn() {
    int64_t n = count(1000000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) all_of(1000, [] {});
    report_nsop("spawn", t0, n);
}

static void g_pingpong() {
    int64_t n = count(1000000), back = 0;
    Chan a, b;
    auto ponger = [=] {
        for (int64_t i = 0, v; i < n; i++) {
            a >> v;
            b << v;
        }
    };
    go ponger;
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        a << i;
        b >> back;
    }
    report_nsop("pingpong", t0, n);
    expect(back, n - 1, "pingpong");
}

static void g_chan_buf() {
    int64_t n = count(5000000), sum = 0, v;
    Chan c(128);
    auto producer = [=] {
        for (int64_t i = 0; i < n; i++) c << i;
    };
    int64_t t0 = now_ns();
    go producer;
    for (int64_t i = 0; i < n; i++) {
        c >> v;
        sum += v;
    }
    report_nsop("chan_buf", t0, n);
    expect(sum, n * (n - 1) / 2, "chan_buf");
}

static void mutex_among(const char *name, int g, int64_t n, bool yields) {
    co_mutex mutex;
    int64_t held = 0, t0 = all_of(g, [&, n, g, yields] {
                          for (int64_t i = 0; i < n / g; i++) {
                              mutex.lock();
                              held++;
                              if (yields) co_yield;
                              mutex.unlock();
                          }
                      });
    report_nsop(name, t0, n);
    expect(held, n / g * g, name);
}

static void g_mutex() { mutex_among("mutex", 8, count(8000000), false); }
static void g_mutex_uncontended() { mutex_among("mutex_uncontended", 1, count(30000000), false); }
static void g_mutex_handoff() { mutex_among("mutex_handoff", 8, count(800000), true); }

static void g_memory() {
    int64_t n = count(20000);
    std::atomic<int64_t> started{0}, left{n};
    co_chan<bool> gate((size_t)n), done(1);
    long before = proc_field("VmRSS");
    auto parked = [&started, &left, gate, done] {
        bool end;
        started++;
        gate >> end;
        if (--left == 0) done << true;
    };
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) go parked;
    while (started < n) co_yield;
    report_parked(t0, n, before);
    t0 = now_ns();
    bool end;
    for (int64_t i = 0; i < n; i++) gate << true;
    done >> end;
    report_nsop("memory_teardown", t0, n);
}

static const Workload workloads[] = {
    {"yield", g_yield, 0},
    {"yield1k", g_yield1k, 0},
    {"spawn", g_spawn, 0},
    {"pingpong", g_pingpong, 0},
    {"chan_buf", g_chan_buf, 0},
    {"mutex", g_mutex, 0},
    {"mutex_uncontended", g_mutex_uncontended, 0},
    {"mutex_handoff", g_mutex_handoff, 0},
    {"memory", g_memory, 0},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    if (peer_lists(workloads, WORKLOADS, argc, argv)) return 0;
    auto all = [=] { /* in a coroutine: what waits outside of one blocks its thread */
                     int status = peer_runs(workloads, WORKLOADS, argc, argv);
                     fflush(NULL);
                     _exit(status);
    };
    go all;
    co_sched.Start(workers(), workers());
}
