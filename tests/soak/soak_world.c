/*
 * The soak's load on the scheduler itself: goroutines by the thousand, loops without a call,
 * blocking calls of each kind, Ps that come and go, stops of the world, plain threads, signals.
 */
#define _GNU_SOURCE
#include "soak.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ---- spawn ----------------------------------------------------------------------------------- */

static uint64_t spawned, ran;
static void child(void *arg) {
    if ((uintptr_t)arg > 0) {
        gort_wg wg = {0};
        for (int i = 0; i < 4; i++) {
            add(&spawned, 1);
            CHECK_EQ(gort_wg_go(&wg, child, (void *)((uintptr_t)arg - 1)), 0);
        }
        gort_wg_wait(&wg);
    }
    add(&ran, 1);
}

static void spawn_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        gort_wg wg = {0};
        int n = (int)(test_random(&seed) % 2000);
        for (int i = 0; i < n; i++) {
            add(&spawned, 1);
            CHECK_EQ(gort_wg_go(&wg, child, (void *)(uintptr_t)(i % 100 == 0 ? 3 : 0)), 0);
        }
        gort_wg_wait(&wg);
        CHECK_EQ(get(&spawned), get(&ran));
        gort_sleep((int64_t)(test_random(&seed) % 20) * GORT_MS);
        soak_round(part);
    }
}

/* ---- loops that make no call ----------------------------------------------------------------- */

static void loop(void *arg) {
    struct timespec t; /* thread time: so much work, however slow the machine */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    int64_t begin = t.tv_sec * GORT_SEC + t.tv_nsec, now = begin;
    volatile uint64_t x = 1;
    while (now - begin < 25 * GORT_MS && now >= begin) { /* another thread's clock may be behind */
        for (int i = 0; i < 20000; i++) x = x * 3 + 1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = t.tv_sec * GORT_SEC + t.tv_nsec;
    }
}

static void loops_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        gort_wg wg = {0};
        for (int i = 0; i < 3; i++) CHECK_EQ(gort_wg_go(&wg, loop, NULL), 0);
        gort_wg_wait(&wg);
        gort_sleep((int64_t)(test_random(&seed) % 200) * GORT_MS);
        soak_round(part);
    }
}

/* ---- blocking -------------------------------------------------------------------------------- */

static long naps(void *arg) {
    usleep((useconds_t)(uintptr_t)arg);
    return 7;
}
static void blocks(void *arg) {
    uintptr_t us = (uintptr_t)arg;
    CHECK_EQ(gort_blocking(naps, arg), 7);
    gort_enter_syscall();
    usleep((useconds_t)us);
    gort_exit_syscall();
    usleep((useconds_t)us); /* unannounced */
}

static void blocking_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        gort_wg wg = {0};
        for (int i = 0; i < 8; i++)
            CHECK_EQ(gort_wg_go(&wg, blocks, (void *)(uintptr_t)(test_random(&seed) % 3000)), 0);
        gort_wg_wait(&wg);
        soak_round(part);
    }
}

/* ---- Ps, worlds ------------------------------------------------------------------------------ */

static void procs_run(Part *part, uint64_t seed) {
    int given = gort_maxprocs(0);
    while (!soak_over()) {
        gort_sleep((int64_t)(test_random(&seed) % 300) * GORT_MS);
        gort_stop_world();
        int n = gort_count();
        gort_start_world();
        CHECK_GT(n, 0);
        if (given > 1) gort_maxprocs(1 + (int)(test_random(&seed) % (uint64_t)given));
        soak_round(part);
    }
    gort_maxprocs(given);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct Exchange {
    gort_chan *to, *from;
    int n;
} Exchange;

static void *thread(void *arg) {
    Exchange *x = arg;
    for (int i = 0; i < x->n; i++) {
        int v = i, w;
        CHECK_EQ(gort_chan_send(x->to, &v), 0);
        CHECK_EQ(gort_chan_recv(x->from, &w), 0);
        CHECK_EQ(w, v + 1);
    }
    return NULL;
}

static long joins(void *arg) {
    pthread_join(*(pthread_t *)arg, NULL);
    return 0;
}

static void threads_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        Exchange x = {gort_chan_new(sizeof(int), 0), gort_chan_new(sizeof(int), 0),
                      (int)(test_random(&seed) % 100)};
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, thread, &x), 0);
        for (int i = 0, v; i < x.n; i++) {
            CHECK_EQ(gort_chan_recv(x.to, &v), 0);
            v++;
            CHECK_EQ(gort_chan_send(x.from, &v), 0);
        }
        gort_blocking(joins, &t);
        gort_chan_release(x.to);
        gort_chan_release(x.from);
        gort_sleep((int64_t)(test_random(&seed) % 20) * GORT_MS);
        soak_round(part);
    }
}

/* ---- signals --------------------------------------------------------------------------------- */

static void signals_run(Part *part, uint64_t seed) {
    gort_chan *c = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    while (!soak_over()) {
        int signo = 0;
        kill(getpid(), SIGUSR1);
        CHECK_EQ(gort_chan_recv(c, &signo), 0);
        CHECK_EQ(signo, SIGUSR1);
        gort_sleep((int64_t)(test_random(&seed) % 50) * GORT_MS);
        soak_round(part);
    }
    gort_signal_stop(c);
    gort_chan_release(c);
}

Part soak_world[] = {{"spawn", spawn_run, NULL, 0, 0, 0, 0},
                     {"loops", loops_run, NULL, 0, 0, 0, 0},
                     {"blocking", blocking_run, NULL, 0, 0, 0, 0},
                     {"procs", procs_run, NULL, 0, 0, 0, 0},
                     {"threads", threads_run, NULL, 0, 0, 0, 0},
                     {"signals", signals_run, NULL, 0, 0, 0, 0},
                     {0}};
