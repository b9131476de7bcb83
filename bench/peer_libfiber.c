/*
 * libfiber: fibers that threads steal from each other. A channel has a signal that one receiver
 * waits for; a sender that finds it full yields until there is a place.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "peer.h"

#include <fiber_channel.h>
#include <fiber_manager.h>
#include <fiber_mutex.h>
#include <fiber_semaphore.h>

enum { STACK = 16 << 10 };

static fiber_t *start(fiber_run_function_t fn, void *arg) {
    fiber_t *f = fiber_create(STACK, fn, arg);
    if (!f) exit(1);
    return f;
}

static int64_t all_of(int64_t n, fiber_run_function_t fn, void *arg) {
    fiber_t **f = must(calloc((size_t)n, sizeof *f));
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) f[i] = start(fn, arg);
    for (int64_t i = 0; i < n; i++) fiber_join(f[i], NULL);
    free(f);
    return t0;
}

static void *yielder(void *n) {
    for (int64_t i = *(int64_t *)n; i > 0; i--) fiber_yield();
    return NULL;
}

static void yield_among(const char *name, int64_t g, int64_t n) {
    int64_t t0 = all_of(g, yielder, &n);
    report_nsop(name, t0, g * n);
}

static void l_yield(void) { yield_among("yield", 2, count(3000000)); }
static void l_yield1k(void) { yield_among("yield1k", 1000, count(5000)); }

static void *nothing(void *arg) { return NULL; }

static void l_spawn(void) {
    int64_t n = count(200000), t0 = now_ns();
    for (int64_t done = 0; done < n; done += 1000) all_of(1000, nothing, NULL);
    report_nsop("spawn", t0, n);
}

/* What is sent is a pointer, and not NULL: a number is sent with one added. */
typedef struct Chan {
    fiber_signal_t signal;
    fiber_bounded_channel_t *c;
} Chan;

static void chan_init(Chan *ch, uint32_t power_of_2) {
    fiber_signal_init(&ch->signal);
    ch->c = must(fiber_bounded_channel_create(power_of_2, &ch->signal));
}
static void chan_end(Chan *ch) {
    fiber_bounded_channel_destroy(ch->c);
    fiber_signal_destroy(&ch->signal);
}
static void put(Chan *ch, int64_t v) {
    fiber_bounded_channel_send(ch->c, (void *)(intptr_t)(v + 1));
}
static int64_t take(Chan *ch) { return (intptr_t)fiber_bounded_channel_receive(ch->c) - 1; }

typedef struct Pair {
    Chan a, b;
    int64_t n;
} Pair;

static void *ponger(void *arg) {
    Pair *p = arg;
    for (int64_t i = 0; i < p->n; i++) put(&p->b, take(&p->a));
    return NULL;
}

static void l_pingpong(void) {
    Pair p = {.n = count(1000000)};
    int64_t back = 0;
    chan_init(&p.a, 1), chan_init(&p.b, 1);
    fiber_t *other = start(ponger, &p);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < p.n; i++) {
        put(&p.a, i);
        back = take(&p.b);
    }
    report_nsop("pingpong", t0, p.n);
    expect(back, p.n - 1, "pingpong");
    fiber_join(other, NULL);
    chan_end(&p.a), chan_end(&p.b);
}

static void *producer(void *arg) {
    Pair *p = arg;
    for (int64_t i = 0; i < p->n; i++) put(&p->a, i);
    return NULL;
}

static void l_chan_buf(void) {
    Pair p = {.n = count(5000000)};
    int64_t sum = 0;
    chan_init(&p.a, 7);
    int64_t t0 = now_ns();
    fiber_t *other = start(producer, &p);
    for (int64_t i = 0; i < p.n; i++) sum += take(&p.a);
    report_nsop("chan_buf", t0, p.n);
    expect(sum, p.n * (p.n - 1) / 2, "chan_buf");
    fiber_join(other, NULL);
    chan_end(&p.a);
}

typedef struct Lockers {
    fiber_mutex_t mutex;
    int64_t each, held;
    int yields;
} Lockers;

static void *locker(void *arg) {
    Lockers *l = arg;
    for (int64_t n = l->each; n > 0; n--) {
        fiber_mutex_lock(&l->mutex);
        l->held++;
        if (l->yields) fiber_yield();
        fiber_mutex_unlock(&l->mutex);
    }
    return NULL;
}

static void mutex_among(const char *name, int g, int64_t n, int yields) {
    Lockers l = {.each = n / g, .yields = yields};
    fiber_mutex_init(&l.mutex);
    int64_t t0 = all_of(g, locker, &l);
    report_nsop(name, t0, n);
    expect(l.held, n / g * g, name);
    fiber_mutex_destroy(&l.mutex);
}

static void l_mutex(void) { mutex_among("mutex", 8, count(8000000), 0); }
static void l_mutex_uncontended(void) { mutex_among("mutex_uncontended", 1, count(30000000), 0); }
static void l_mutex_handoff(void) { mutex_among("mutex_handoff", 8, count(800000), 1); }

typedef struct Node {
    Chan *up;
    int64_t num, size;
} Node;

static void *skynet(void *arg) {
    Node *me = arg, child[10];
    fiber_t *f[10];
    Chan ch;
    int64_t sum = 0;
    if (me->size == 1) {
        put(me->up, me->num);
        return NULL;
    }
    chan_init(&ch, 4);
    for (int i = 0; i < 10; i++) {
        child[i] = (Node){&ch, me->num + i * (me->size / 10), me->size / 10};
        f[i] = start(skynet, &child[i]);
    }
    for (int i = 0; i < 10; i++) sum += take(&ch);
    for (int i = 0; i < 10; i++) fiber_join(f[i], NULL); /* they are not through with ch before */
    chan_end(&ch);
    put(me->up, sum);
    return NULL;
}

static void l_skynet(void) {
    int64_t n = count(1000000);
    Chan ch;
    chan_init(&ch, 1);
    Node root = {&ch, 0, n};
    int64_t t0 = now_ns();
    fiber_t *f = start(skynet, &root);
    int64_t sum = take(&ch);
    report_ms("skynet", t0);
    expect(sum, n * (n - 1) / 2, "skynet (a power of ten only)");
    fiber_join(f, NULL);
    chan_end(&ch);
}

static _Atomic int64_t started;

static void *parked(void *gate) {
    started++;
    fiber_semaphore_wait(gate);
    return NULL;
}

static void l_memory(void) {
    int64_t n = count(20000);
    fiber_t **f = must(calloc((size_t)n, sizeof *f));
    fiber_semaphore_t gate;
    fiber_semaphore_init(&gate, 0);
    started = 0;
    long before = proc_field("VmRSS");
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) f[i] = start(parked, &gate);
    while (started < n) fiber_yield();
    report_parked(t0, n, before);
    t0 = now_ns();
    for (int64_t i = 0; i < n; i++) fiber_semaphore_post(&gate);
    for (int64_t i = 0; i < n; i++) fiber_join(f[i], NULL);
    report_nsop("memory_teardown", t0, n);
    free(f);
}

static const Workload workloads[] = {
    {"yield", l_yield, 0},
    {"yield1k", l_yield1k, 0},
    {"spawn", l_spawn, 0},
    {"pingpong", l_pingpong, 0},
    {"chan_buf", l_chan_buf, 0},
    {"mutex", l_mutex, 0},
    {"mutex_uncontended", l_mutex_uncontended, 0},
    {"mutex_handoff", l_mutex_handoff, 0},
    {"skynet", l_skynet, 0},
    {"memory", l_memory, 0},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    if (peer_lists(workloads, WORKLOADS, argc, argv)) return 0;
    fiber_manager_init((size_t)workers());
    int status = peer_runs(workloads, WORKLOADS, argc, argv);
    fflush(NULL);
    _exit(status); /* its threads are left as they are */
}
