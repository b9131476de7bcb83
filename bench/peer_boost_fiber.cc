// Boost.Fiber on the workloads it can express, as a peer: one thread, its default round-robin
// scheduler (Ps other than one would need another scheduler, and fibers would not be stolen
// while they run anything of one thread's own). Names are bench.c's; counts are those of the twin,
// but for smaller ones where a fiber's stack from the heap makes it slow. No figure here has a
// target: it stands in the table for the reader.
//
#include "peer.h"

#include <boost/fiber/all.hpp>
#include <functional>
#include <vector>

namespace bf = boost::fibers;
static void among(int g, const std::function<void()> &fn) {
    std::vector<bf::fiber> all;
    for (int i = 0; i < g; i++) all.emplace_back(fn);
    for (auto &f : all) f.join();
}

static void yield_among(const char *name, int g, int64_t n) {
    int64_t t0 = now_ns();
    among(g, [n] {
        for (int64_t i = 0; i < n; i++) boost::this_fiber::yield();
    });
    report_nsop(name, t0, g * n);
}

static void f_yield() { yield_among("yield", 2, count(1000000)); }
static void f_yield1k() { yield_among("yield1k", 1000, count(1000)); }

static void f_spawn() {
    int64_t n = count(100000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) among(1000, [] {});
    report_nsop("spawn", t0, n);
}

static void f_pingpong() {
    int64_t n = count(300000), back = 0;
    bf::unbuffered_channel<int64_t> a, b;
    bf::fiber other([&] {
        for (int64_t v : a) b.push(v);
    });
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        a.push(i);
        b.pop(back);
    }
    report_nsop("pingpong", t0, n);
    a.close();
    other.join();
}

static void f_chan_buf() {
    int64_t n = count(1000000), sum = 0;
    bf::buffered_channel<int64_t> c(128);
    int64_t t0 = now_ns();
    bf::fiber producer([&] {
        for (int64_t i = 0; i < n; i++) c.push(i);
        c.close();
    });
    for (int64_t v : c) sum += v;
    report_nsop("chan_buf", t0, n);
    producer.join();
    if (sum != n * (n - 1) / 2) exit(1);
}

static void mutex_among(const char *name, int g, int64_t n, bool yields) {
    bf::mutex mu;
    int64_t t0 = now_ns();
    among(g, [&] {
        for (int64_t i = 0; i < n / g; i++) {
            mu.lock();
            if (yields) boost::this_fiber::yield();
            mu.unlock();
        }
    });
    report_nsop(name, t0, n);
}

static void f_mutex_uncontended() { mutex_among("mutex_uncontended", 1, count(10000000), false); }
static void f_mutex() { mutex_among("mutex", 8, count(8000000), false); }
static void f_mutex_handoff() { mutex_among("mutex_handoff", 8, count(200000), true); }

static void f_memory() {
    int64_t n = count(10000);
    std::vector<bf::fiber> all;
    bf::unbuffered_channel<int64_t> c;
    int64_t started = 0;
    all.reserve((size_t)n);
    long before = proc_field("VmRSS");
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++)
        all.emplace_back([&] {
            int64_t v;
            started++;
            c.pop(v);
        });
    while (started < n) boost::this_fiber::yield();
    report_parked(t0, n, before);
    t0 = now_ns();
    c.close();
    for (auto &f : all) f.join();
    report_nsop("memory_teardown", t0, n);
}

static const Workload workloads[] = {
    {"yield", f_yield, 1},
    {"yield1k", f_yield1k, 1},
    {"spawn", f_spawn, 1},
    {"pingpong", f_pingpong, 1},
    {"chan_buf", f_chan_buf, 1},
    {"mutex", f_mutex, 1},
    {"mutex_uncontended", f_mutex_uncontended, 1},
    {"mutex_handoff", f_mutex_handoff, 1},
    {"memory", f_memory, 1},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    return peer_lists(workloads, WORKLOADS, argc, argv)
               ? 0
               : peer_runs(workloads, WORKLOADS, argc, argv);
}
