/*
 * Photon: its threads run in one of the kernel's (a vCPU), and none is stolen. Joins, mutexes and
 * semaphores are its own; channels are those of its go.h. Stacks come from its pool and are 64 KB:
 * a million of them, in skynet, are too many.
 */
#include "peer.h"

#include <atomic>
#include <photon/thread/go.h>
#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>
#include <photon/thread/thread11.h>
#include <vector>

enum { STACK = 64 << 10 };
typedef photon::channel<int64_t> Chan;

template <class F> static photon::join_handle *start(F fn) {
    return photon::thread_enable_join(photon::thread_create11(STACK, fn));
}

/* n that run fn, started and joined; the time before. */
template <class F> static int64_t all_of(int64_t n, F fn) {
    std::vector<photon::join_handle *> all;
    all.reserve((size_t)n);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) all.push_back(start(fn));
    for (auto *one : all) photon::thread_join(one);
    return t0;
}

static void yield_among(const char *name, int64_t g, int64_t n) {
    int64_t t0 = all_of(g, [n] {
        for (int64_t i = 0; i < n; i++) photon::thread_yield();
    });
    report_nsop(name, t0, g * n);
}

static void p_yield() { yield_among("yield", 2, count(3000000)); }
static void p_yield1k() { yield_among("yield1k", 1000, count(5000)); }

static void p_spawn() {
    int64_t n = count(1000000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) all_of(1000, [] {});
    report_nsop("spawn", t0, n);
}

static void p_pingpong() {
    int64_t n = count(1000000), back = 0;
    Chan a, b;
    auto *other = start([&] {
        for (int64_t v; a.recv(v);) b.send(v);
    });
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        a.send(i);
        b.recv(back);
    }
    report_nsop("pingpong", t0, n);
    expect(back, n - 1, "pingpong");
    a.close();
    photon::thread_join(other);
}

static void p_chan_buf() {
    int64_t n = count(5000000), sum = 0, v;
    Chan c(128);
    int64_t t0 = now_ns();
    auto *other = start([&] {
        for (int64_t i = 0; i < n; i++) c.send(i);
        c.close();
    });
    while (c.recv(v)) sum += v;
    report_nsop("chan_buf", t0, n);
    expect(sum, n * (n - 1) / 2, "chan_buf");
    photon::thread_join(other);
}

static void mutex_among(const char *name, int g, int64_t n, bool yields) {
    photon::mutex mutex;
    int64_t held = 0, t0 = all_of(g, [&] {
                          for (int64_t i = 0; i < n / g; i++) {
                              mutex.lock();
                              held++;
                              if (yields) photon::thread_yield();
                              mutex.unlock();
                          }
                      });
    report_nsop(name, t0, n);
    expect(held, n / g * g, name);
}

static void p_mutex() { mutex_among("mutex", 8, count(8000000), false); }
static void p_mutex_uncontended() { mutex_among("mutex_uncontended", 1, count(30000000), false); }
static void p_mutex_handoff() { mutex_among("mutex_handoff", 8, count(800000), true); }

static void p_memory() {
    int64_t n = count(20000), started = 0;
    photon::semaphore gate;
    std::vector<photon::join_handle *> all;
    all.reserve((size_t)n);
    long before = proc_field("VmRSS");
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++)
        all.push_back(start([&] {
            started++;
            gate.wait(1);
        }));
    while (started < n) photon::thread_yield();
    report_parked(t0, n, before);
    t0 = now_ns();
    gate.signal((uint64_t)n);
    for (auto *one : all) photon::thread_join(one);
    report_nsop("memory_teardown", t0, n);
}

static const Workload workloads[] = {
    {"yield", p_yield, 1},
    {"yield1k", p_yield1k, 1},
    {"spawn", p_spawn, 1},
    {"pingpong", p_pingpong, 1},
    {"chan_buf", p_chan_buf, 1},
    {"mutex", p_mutex, 1},
    {"mutex_uncontended", p_mutex_uncontended, 1},
    {"mutex_handoff", p_mutex_handoff, 1},
    {"memory", p_memory, 1},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    if (peer_lists(workloads, WORKLOADS, argc, argv)) return 0;
    photon::use_pooled_stack_allocator();
    photon::vcpu_init();
    int status = peer_runs(workloads, WORKLOADS, argc, argv);
    photon::vcpu_fini();
    return status;
}
