/*
 * The same workloads with a thread where gort has a goroutine: what the kernel's own scheduler
 * makes of them. Names are those of bench.c, counts are smaller by default (a figure is per
 * operation), and the primitives are the C library's.
 *
 *     pthread spawn|pingpong|mutex|mutex_uncontended|yield|syscall|all [N]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static int64_t arg_n;

static int64_t count(int64_t preset) { return arg_n > 0 ? arg_n : preset; }

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

/* ---- spawn --------------------------------------------------------------------------------- */

static void *nothing(void *arg) { return NULL; }

static void t_spawn(void) {
    enum { BATCH = 100 };
    int64_t n = count(10000);
    pthread_t th[BATCH];
    int64_t t0 = now_ns();
    for (int64_t done = 0; done < n; done += BATCH) {
        for (int i = 0; i < BATCH; i++) th[i] = start(nothing, NULL);
        for (int i = 0; i < BATCH; i++) pthread_join(th[i], NULL);
    }
    report_nsop("spawn", t0, n);
}

/* ---- the round trip: an unbuffered channel is a mutex, a condition and a flag --------------- */

struct slot {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    int full, closed;
    int64_t value;
};

static void put(struct slot *s, int64_t v) {
    pthread_mutex_lock(&s->mu);
    while (s->full) pthread_cond_wait(&s->changed, &s->mu);
    s->value = v;
    s->full = 1;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

static int take(struct slot *s, int64_t *v) {
    pthread_mutex_lock(&s->mu);
    while (!s->full && !s->closed) pthread_cond_wait(&s->changed, &s->mu);
    int got = s->full;
    *v = s->value;
    s->full = 0;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
    return got;
}

static struct slot a = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static struct slot b = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *ponger(void *arg) {
    int64_t v;
    while (take(&a, &v)) put(&b, v);
    return NULL;
}

static void t_pingpong(void) {
    int64_t n = count(20000), back;
    pthread_t th = start(ponger, NULL);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        put(&a, i);
        take(&b, &back);
    }
    report_nsop("pingpong", t0, n);
    pthread_mutex_lock(&a.mu);
    a.closed = 1;
    pthread_cond_broadcast(&a.changed);
    pthread_mutex_unlock(&a.mu);
    pthread_join(th, NULL);
    a.closed = 0;
}

/* ---- the mutex, the yield, the nap --------------------------------------------------------- */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int64_t each, shared;

static void *locker(void *arg) {
    for (int64_t n = each; n > 0; n--) {
        pthread_mutex_lock(&mu);
        shared++;
        pthread_mutex_unlock(&mu);
    }
    return NULL;
}

static void *yielder(void *arg) {
    for (int64_t n = each; n > 0; n--) sched_yield();
    return NULL;
}

static void *napper(void *arg) {
    usleep(10000);
    return NULL;
}

static int64_t all_of(int threads, void *(*fn)(void *)) {
    pthread_t *th = must(calloc((size_t)threads, sizeof *th));
    int64_t t0 = now_ns();
    for (int i = 0; i < threads; i++) th[i] = start(fn, NULL);
    for (int i = 0; i < threads; i++) pthread_join(th[i], NULL);
    free(th);
    return t0;
}

static void t_mutex(void) {
    each = count(2000000) / 8;
    report_nsop("mutex", all_of(8, locker), each * 8);
}

static void t_mutex_uncontended(void) {
    each = count(10000000);
    report_nsop("mutex_uncontended", all_of(1, locker), each);
}

static void t_yield(void) {
    each = count(200000);
    report_nsop("yield", all_of(2, yielder), each * 2);
}

static void t_syscall(void) { report_ms("syscall", all_of((int)count(1000), napper)); }

/* ---- the table ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} workloads[] = {
    {"yield", t_yield},
    {"spawn", t_spawn},
    {"pingpong", t_pingpong},
    {"mutex", t_mutex},
    {"mutex_uncontended", t_mutex_uncontended},
    {"syscall", t_syscall},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    int found = 0;
    arg_n = argc > 2 ? atoll(argv[2]) : 0;
    for (int i = 0; i < WORKLOADS; i++) {
        if (strcmp(name, "all") && strcmp(name, workloads[i].name)) continue;
        workloads[i].run();
        found = 1;
    }
    if (!found)
        fprintf(stderr, "usage: pthread all|NAME [N]; names: those of bench, six of them\n");
    return found ? 0 : 2;
}
