/*
 * Argobots: threads of its own on execution streams, each with a pool, which steal from each other
 * at random. It has mutexes, conditions and joins, and no channels: they are rings (ring.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "peer.h"

#include <abt.h>

#define Mutex ABT_mutex
#define Cond ABT_cond

static inline void ring_lock(Mutex *m) { ABT_mutex_lock(*m); }
static inline void ring_unlock(Mutex *m) { ABT_mutex_unlock(*m); }
static inline void ring_wait(Cond *c, Mutex *m) { ABT_cond_wait(*c, *m); }
static inline void ring_signal(Cond *c) { ABT_cond_signal(*c); }
static inline void ring_broadcast(Cond *c) { ABT_cond_broadcast(*c); }

#include "ring.h"

static Ring *ring_new(unsigned capacity) {
    Ring *r = must(calloc(1, sizeof *r));
    r->capacity = capacity;
    ABT_mutex_create(&r->mutex);
    ABT_cond_create(&r->not_full);
    ABT_cond_create(&r->not_empty);
    return r;
}

static void ring_free(Ring *r) {
    ABT_mutex_free(&r->mutex);
    ABT_cond_free(&r->not_full);
    ABT_cond_free(&r->not_empty);
    free(r);
}

enum { MOST = 64 };
static ABT_pool pools[MOST];
static int streams;

/* Into the pool of the stream that this is on, as go does: the others steal. */
static ABT_thread start(void (*fn)(void *), void *arg) {
    ABT_thread t;
    ABT_pool mine;
    ABT_self_get_last_pool(&mine);
    if (ABT_thread_create(mine, fn, arg, ABT_THREAD_ATTR_NULL, &t) != ABT_SUCCESS) exit(1);
    return t;
}

/* n that run fn, started and joined; the time before. */
static int64_t all_of(int64_t n, void (*fn)(void *), void *arg) {
    ABT_thread *t = must(calloc((size_t)n, sizeof *t));
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) t[i] = start(fn, arg);
    for (int64_t i = 0; i < n; i++) ABT_thread_free(&t[i]); /* joins */
    free(t);
    return t0;
}

static void yielder(void *n) {
    for (int64_t i = *(int64_t *)n; i > 0; i--) ABT_self_yield();
}

static void yield_among(const char *name, int64_t g, int64_t n) {
    int64_t t0 = all_of(g, yielder, &n);
    report_nsop(name, t0, g * n);
}

static void a_yield(void) { yield_among("yield", 2, count(3000000)); }
static void a_yield1k(void) { yield_among("yield1k", 1000, count(5000)); }

static void nothing(void *arg) {}

static void a_spawn(void) {
    int64_t n = count(1000000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) all_of(1000, nothing, NULL);
    report_nsop("spawn", t0, n);
}

typedef struct Pair {
    Ring *a, *b;
    int64_t n;
} Pair;

static void ponger(void *arg) {
    Pair *p = arg;
    for (int64_t v; ring_take(p->a, &v);) ring_put(p->b, v);
}

static void a_pingpong(void) {
    Pair p = {ring_new(1), ring_new(1), 0};
    int64_t n = count(1000000), back = 0;
    ABT_thread other = start(ponger, &p);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        ring_put(p.a, i);
        ring_take(p.b, &back);
    }
    report_nsop("pingpong", t0, n);
    expect(back, n - 1, "pingpong");
    ring_close(p.a);
    ABT_thread_free(&other);
    ring_free(p.a), ring_free(p.b);
}

static void producer(void *arg) {
    Pair *p = arg;
    for (int64_t i = 0; i < p->n; i++) ring_put(p->a, i);
    ring_close(p->a);
}

static void a_chan_buf(void) {
    Pair p = {ring_new(RING_MOST), NULL, count(5000000)};
    int64_t v, sum = 0, t0 = now_ns();
    ABT_thread other = start(producer, &p);
    while (ring_take(p.a, &v)) sum += v;
    report_nsop("chan_buf", t0, p.n);
    expect(sum, p.n * (p.n - 1) / 2, "chan_buf");
    ABT_thread_free(&other);
    ring_free(p.a);
}

typedef struct Lockers {
    ABT_mutex mutex;
    int64_t each, held;
    int yields;
} Lockers;

static void locker(void *arg) {
    Lockers *l = arg;
    for (int64_t n = l->each; n > 0; n--) {
        ABT_mutex_lock(l->mutex);
        l->held++;
        if (l->yields) ABT_self_yield();
        ABT_mutex_unlock(l->mutex);
    }
}

static void mutex_among(const char *name, int g, int64_t n, int yields) {
    Lockers l = {.each = n / g, .yields = yields};
    ABT_mutex_create(&l.mutex);
    int64_t t0 = all_of(g, locker, &l);
    report_nsop(name, t0, n);
    expect(l.held, n / g * g, name);
    ABT_mutex_free(&l.mutex);
}

static void a_mutex(void) { mutex_among("mutex", 8, count(8000000), 0); }
static void a_mutex_uncontended(void) { mutex_among("mutex_uncontended", 1, count(30000000), 0); }
static void a_mutex_handoff(void) { mutex_among("mutex_handoff", 8, count(800000), 1); }

typedef struct Node {
    int64_t num, size, sum;
} Node;

static void skynet(void *arg) {
    Node *me = arg, child[10];
    ABT_thread t[10];
    me->sum = me->num;
    if (me->size == 1) return;
    me->sum = 0;
    for (int i = 0; i < 10; i++) {
        child[i] = (Node){me->num + i * (me->size / 10), me->size / 10, 0};
        t[i] = start(skynet, &child[i]);
    }
    for (int i = 0; i < 10; i++) {
        ABT_thread_free(&t[i]);
        me->sum += child[i].sum;
    }
}

static void a_skynet(void) {
    Node root = {0, count(1000000), 0};
    int64_t t0 = now_ns();
    ABT_thread t = start(skynet, &root);
    ABT_thread_free(&t);
    report_ms("skynet", t0);
    expect(root.sum, root.size * (root.size - 1) / 2, "skynet (a power of ten only)");
}

static _Atomic int64_t started;

static void parked(void *arg) {
    started++;
    ABT_eventual_wait(*(ABT_eventual *)arg, NULL);
}

static void a_memory(void) {
    int64_t n = count(100000);
    ABT_thread *t = must(calloc((size_t)n, sizeof *t));
    ABT_eventual gate;
    ABT_eventual_create(0, &gate);
    started = 0;
    long before = proc_field("VmRSS");
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) t[i] = start(parked, &gate);
    while (started < n) ABT_self_yield();
    report_parked(t0, n, before);
    t0 = now_ns();
    ABT_eventual_set(gate, NULL, 0);
    for (int64_t i = 0; i < n; i++) ABT_thread_free(&t[i]);
    report_nsop("memory_teardown", t0, n);
    ABT_eventual_free(&gate);
    free(t);
}

static const Workload workloads[] = {
    {"yield", a_yield, 0},
    {"yield1k", a_yield1k, 0},
    {"spawn", a_spawn, 0},
    {"pingpong", a_pingpong, 0},
    {"chan_buf", a_chan_buf, 0},
    {"mutex", a_mutex, 0},
    {"mutex_uncontended", a_mutex_uncontended, 0},
    {"mutex_handoff", a_mutex_handoff, 0},
    {"skynet", a_skynet, 0},
    {"memory", a_memory, 0},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

/* Each stream looks into its own pool first, then into the others. */
static void stream_pools(int own, ABT_pool order[MOST]) {
    for (int i = 0; i < streams; i++) order[i] = pools[(own + i) % streams];
}

int main(int argc, char **argv) {
    ABT_xstream stream[MOST];
    ABT_pool order[MOST];
    if (peer_lists(workloads, WORKLOADS, argc, argv)) return 0;
    streams = workers() < MOST ? workers() : MOST;
    ABT_init(argc, argv);
    for (int i = 0; i < streams; i++)
        ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pools[i]);
    ABT_xstream_self(&stream[0]);
    stream_pools(0, order);
    ABT_xstream_set_main_sched_basic(stream[0], ABT_SCHED_RANDWS, streams, order);
    for (int i = 1; i < streams; i++) {
        stream_pools(i, order);
        ABT_xstream_create_basic(ABT_SCHED_RANDWS, streams, order, ABT_SCHED_CONFIG_NULL,
                                 &stream[i]);
    }
    int status = peer_runs(workloads, WORKLOADS, argc, argv);
    for (int i = 1; i < streams; i++) {
        ABT_xstream_join(stream[i]);
        ABT_xstream_free(&stream[i]);
    }
    ABT_finalize();
    return status;
}
