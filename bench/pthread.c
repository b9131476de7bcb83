/*
 * The same workloads with a thread where gort has a goroutine: what the kernel's own scheduler
 * makes of them, on as many processors as WORKERS says. Names are those of bench.c, counts are
 * smaller by default (a figure is per operation), and the primitives are the C library's: a channel
 * is a ring (ring.h).
 *
 *     pthread list|all|NAME [N]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "peer.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define Mutex pthread_mutex_t
#define Cond pthread_cond_t

static inline void ring_lock(Mutex *m) { pthread_mutex_lock(m); }
static inline void ring_unlock(Mutex *m) { pthread_mutex_unlock(m); }
static inline void ring_wait(Cond *c, Mutex *m) { pthread_cond_wait(c, m); }
static inline void ring_signal(Cond *c) { pthread_cond_signal(c); }
static inline void ring_broadcast(Cond *c) { pthread_cond_broadcast(c); }

#include "ring.h"

static Ring *ring_new(unsigned capacity) { /* all zero is ready */
    Ring *r = must(calloc(1, sizeof *r));
    r->capacity = capacity;
    return r;
}

static pthread_t start(void *(*fn)(void *), void *arg) {
    pthread_attr_t attr;
    pthread_t th;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    int err = pthread_create(&th, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    if (!err) return th;
    fprintf(stderr, "pthread: %s\n", strerror(err));
    exit(1);
}

static int64_t all_of(int64_t threads, void *(*fn)(void *), void *arg) {
    pthread_t *th = must(calloc((size_t)threads, sizeof *th));
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < threads; i++) th[i] = start(fn, arg);
    for (int64_t i = 0; i < threads; i++) pthread_join(th[i], NULL);
    free(th);
    return t0;
}

/* ---- yield, spawn -------------------------------------------------------------------------- */

static void *yielder(void *each) {
    for (int64_t n = *(int64_t *)each; n > 0; n--) sched_yield();
    return NULL;
}

static void yield_among(const char *name, int64_t threads, int64_t each) {
    int64_t t0 = all_of(threads, yielder, &each);
    report_nsop(name, t0, each * threads);
}

static void t_yield(void) { yield_among("yield", 2, count(200000)); }
static void t_yield1k(void) { yield_among("yield1k", 1000, count(200)); }

static void *nothing(void *arg) { return NULL; }

static void t_spawn(void) {
    enum { BATCH = 100 };
    int64_t n = count(10000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += BATCH) all_of(BATCH, nothing, NULL);
    report_nsop("spawn", t0, n);
}

/* ---- channels ------------------------------------------------------------------------------ */

typedef struct Pair {
    Ring *a, *b;
    int64_t n;
} Pair;

static void *ponger(void *arg) {
    Pair *p = arg;
    for (int64_t v; ring_take(p->a, &v);) ring_put(p->b, v);
    return NULL;
}

static void t_pingpong(void) {
    Pair p = {ring_new(1), ring_new(1), count(20000)};
    int64_t back = 0;
    pthread_t th = start(ponger, &p);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < p.n; i++) {
        ring_put(p.a, i);
        ring_take(p.b, &back);
    }
    report_nsop("pingpong", t0, p.n);
    expect(back, p.n - 1, "pingpong");
    ring_close(p.a);
    pthread_join(th, NULL);
    free(p.a), free(p.b);
}

static void *producer(void *arg) {
    Pair *p = arg;
    for (int64_t i = 0; i < p->n; i++) ring_put(p->a, i);
    ring_close(p->a);
    return NULL;
}

static void t_chan_buf(void) {
    Pair p = {ring_new(RING_MOST), NULL, count(500000)};
    int64_t v, sum = 0, t0 = now_ns();
    pthread_t th = start(producer, &p);
    while (ring_take(p.a, &v)) sum += v;
    report_nsop("chan_buf", t0, p.n);
    expect(sum, p.n * (p.n - 1) / 2, "chan_buf");
    pthread_join(th, NULL);
    free(p.a);
}

/* ---- the mutex ----------------------------------------------------------------------------- */

typedef struct Lockers {
    pthread_mutex_t mutex;
    int64_t each, held;
} Lockers;

static void *locker(void *arg) {
    Lockers *l = arg;
    for (int64_t n = l->each; n > 0; n--) {
        pthread_mutex_lock(&l->mutex);
        l->held++;
        pthread_mutex_unlock(&l->mutex);
    }
    return NULL;
}

static void mutex_among(const char *name, int threads, int64_t n) {
    Lockers l = {PTHREAD_MUTEX_INITIALIZER, n / threads, 0};
    int64_t t0 = all_of(threads, locker, &l);
    report_nsop(name, t0, n);
    expect(l.held, n / threads * threads, name);
}

static void t_mutex(void) { mutex_among("mutex", 8, count(2000000)); }
static void t_mutex_uncontended(void) { mutex_among("mutex_uncontended", 1, count(10000000)); }

/* ---- threads that wait --------------------------------------------------------------------- */

static void *napper(void *arg) {
    usleep(10000);
    return NULL;
}

static void t_syscall(void) { report_ms("syscall", all_of(count(1000), napper, NULL)); }

typedef struct Parked {
    Ring *gate;
    _Atomic int64_t started;
} Parked;

static void *parked(void *arg) {
    Parked *p = arg;
    int64_t v;
    p->started++;
    ring_take(p->gate, &v);
    return NULL;
}

/* What each takes is not told: the kernel's part of it is not in the process's resident set. */
static void t_memory(void) {
    int64_t n = count(5000);
    Parked p = {.gate = ring_new(1)};
    pthread_t *th = must(calloc((size_t)n, sizeof *th));
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) th[i] = start(parked, &p);
    while (p.started < n) sched_yield();
    report_nsop("memory_create", t0, n);
    t0 = now_ns();
    ring_close(p.gate);
    for (int64_t i = 0; i < n; i++) pthread_join(th[i], NULL);
    report_nsop("memory_teardown", t0, n);
    free(th);
    free(p.gate);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const Workload workloads[] = {
    {"yield", t_yield, 0},
    {"yield1k", t_yield1k, 0},
    {"spawn", t_spawn, 0},
    {"pingpong", t_pingpong, 0},
    {"chan_buf", t_chan_buf, 0},
    {"mutex", t_mutex, 0},
    {"mutex_uncontended", t_mutex_uncontended, 0},
    {"syscall", t_syscall, 0},
    {"memory", t_memory, 0},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

/* The first WORKERS of the processors that this may use, where it is said. */
static void confine(void) {
    cpu_set_t all, some;
    if (!getenv("WORKERS") || sched_getaffinity(0, sizeof all, &all)) return;
    CPU_ZERO(&some);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) < workers(); i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &some);
    sched_setaffinity(0, sizeof some, &some);
}

int main(int argc, char **argv) {
    if (peer_lists(workloads, WORKLOADS, argc, argv)) return 0;
    confine();
    return peer_runs(workloads, WORKLOADS, argc, argv);
}
