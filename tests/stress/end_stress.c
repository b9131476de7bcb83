/*
 * Runtimes that end at any moment: end_stress [seconds [seed]]
 *
 * A round is a runtime. Goroutines do random things with objects that live through all rounds, plain threads do the same at
 * the same time and go on when the runtime ends, and the main goroutine returns after a random while, whatever the others are
 * in: a wait, a call of libc, a loop, a blocking call. Then the plain threads are held between two of their calls, and it is
 * looked at what the rule says (docs/INVARIANTS.md, "The end of a runtime"):
 *   - no goroutine of the round runs any more: each looks at every step whether its round is over;
 *   - nothing points into it: no object has a waiter left, and whatever a dead goroutine held can be released for it;
 *   - no lock of libc or of the library is held: printing, allocating, the loader and the calls with locks of their own return;
 *   - deadlines of contexts come.
 * A hang is told by the time limit of whoever runs this, memory that was used after its end by ASan.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "stress.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* What a goroutine has allocated when it is stopped for good is lost with it. */
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

enum { KIN = 4, THREADS = 3, MOST = 24 };

static gort_mutex mutexes[KIN];
static gort_rwmutex rwmutexes[KIN];
static gort_cond conds[KIN];
static gort_mutex cond_mutexes[2][KIN]; /* a plain thread has to lock its own again, which no goroutine may die with */
static gort_sem sems[KIN];
static gort_wg wgs[KIN];
static gort_chan *chans[KIN];
static gort_pool *pool;
static gort_ctx *ctx;
static int pipes[KIN][2];
static FILE *null;

static int round_no, over;           /* the runtime that runs; the last one that has ended */
static int hold, held, quit; /* plain threads */
static uint64_t steps, rounds;

/* ---- what both do ------------------------------------------------------------------------------ */

/* Of a goroutine: the round it was started in; 0: a plain thread. */
static void still(int mine) {
    CHECKF(mine == 0 || mine > get(&over), "a goroutine of round %d runs after its end", mine);
}

static int64_t soon(uint64_t r) { return gort_now() + (int64_t)(r % 300) * GORT_US; }
/* A goroutine may wait for ever: somebody else, or the end, sees to it. A plain thread comes back. */
static int64_t deadline(int mine, uint64_t r) { return mine && r % 3 == 0 ? GORT_FOREVER : soon(r); }

static void with_mutex(int mine, uint64_t r) {
    gort_mutex *mu = &mutexes[r % KIN];
    if (gort_mutex_lock_until(mu, deadline(mine, r >> 8)) < 0) return;
    still(mine);
    if (r & 64) gort_yield();
    gort_mutex_unlock(mu);
}

static void with_rwmutex(int mine, uint64_t r) {
    gort_rwmutex *rw = &rwmutexes[r % KIN];
    if (r & 32) {
        if (gort_rwmutex_rlock_until(rw, deadline(mine, r >> 8)) < 0) return;
        if (r & 64) gort_yield();
        gort_rwmutex_runlock(rw);
    } else {
        if (gort_rwmutex_lock_until(rw, deadline(mine, r >> 8)) < 0) return;
        if (r & 64) gort_yield();
        gort_rwmutex_unlock(rw);
    }
    still(mine);
}

static void with_cond(int mine, uint64_t r) {
    gort_mutex *mu = &cond_mutexes[mine != 0][r % KIN];
    if (r & 32) {
        if (r & 64) gort_cond_signal(&conds[r % KIN]);
        else gort_cond_broadcast(&conds[r % KIN]);
        return;
    }
    if (gort_mutex_lock_until(mu, deadline(mine, r >> 8)) < 0) return;
    gort_cond_wait_until(&conds[r % KIN], mu, deadline(mine, r >> 9));
    still(mine);
    gort_mutex_unlock(mu);
}

static void with_sem(int mine, uint64_t r) {
    gort_sem *s = &sems[r % KIN];
    int64_t n = 1 + (int64_t)(r >> 6) % 3;
    if (gort_sem_acquire_until(s, n, deadline(mine, r >> 8)) < 0) return;
    still(mine);
    gort_sem_release(s, n);
}

static void nothing(void *arg) { still((int)(intptr_t)arg); }

/* The wait group's counter is raised for the round by goroutines alone; a plain thread only waits. */
static void with_wg(int mine, uint64_t r) {
    gort_wg *wg = &wgs[r % KIN];
    int e = (r & 32) && mine ? gort_wg_go(wg, nothing, (void *)(intptr_t)mine) : 0;
    CHECKF(e == 0 || e == -ENOMEM || e == -ENOTCONN, "gort_wg_go: %d", e);
    gort_wg_wait_until(wg, deadline(mine, r >> 8));
    still(mine);
}

static void with_chan(int mine, uint64_t r) {
    gort_chan *c = chans[r % KIN];
    uint64_t v = r;
    int64_t until = deadline(mine, r >> 8);
    if (r & 32) gort_chan_send_until(c, &v, until);
    else gort_chan_recv_until(c, &v, until);
    still(mine);
}

static void with_select(int mine, uint64_t r) {
    uint64_t v = r;
    gort_case cases[20];
    int n = 1 + (int)(r >> 6) % 20;
    for (int i = 0; i < n; i++)
        cases[i] = (r >> i) & 1 ? (gort_case){GORT_RECV, chans[(r + (unsigned)i) % KIN], &v, 0}
                                : (gort_case){GORT_SEND, chans[(r + (unsigned)i) % KIN], &v, 0};
    gort_select_until(cases, n, deadline(mine, r >> 8));
    still(mine);
}

static void with_time(int mine, uint64_t r) {
    gort_timer *t = gort_timer_new((int64_t)(r % 200) * GORT_US, nothing, (void *)(intptr_t)get(&round_no));
    if (t && (r & 64)) gort_timer_reset(t, (int64_t)(r % 100) * GORT_US);
    if (r & 32) gort_sleep((int64_t)(r % 100) * GORT_US);
    gort_timer_free(t);
    gort_chan *after = r & 128 ? gort_after((int64_t)(r % 100) * GORT_US) : NULL;
    gort_chan_release(after);
    still(mine);
}

static void with_ctx(int mine, uint64_t r) {
    gort_ctx *c = gort_ctx_with_deadline(r & 32 ? ctx : NULL, soon(r >> 8));
    if (c == NULL) return;
    if (r & 64) gort_chan_recv_until(gort_ctx_done(c), NULL, deadline(mine, r >> 10));
    if (r & 128) gort_ctx_cancel(c);
    gort_ctx_release(c);
    still(mine);
}

static void with_descriptors(int mine, uint64_t r) {
    char c = 0;
    if (r & 32) gort_read_until(pipes[r % KIN][0], &c, 1, deadline(mine, r >> 8));
    else gort_write_until(pipes[r % KIN][1], &c, 1, soon(r >> 8));
    struct pollfd p = {.fd = pipes[r % KIN][0], .events = POLLIN};
    if (r & 64) gort_poll(&p, 1, mine && (r & 128) ? -1 : 0);
    still(mine);
}

static void with_house(int mine, uint64_t r) {
    char addr[64], local[64];
    gort_chan *ints = gort_chan_new(sizeof(int), 1);
    if (gort_signal_notify(ints, SIGUSR1) == 0 && (r & 32)) raise(SIGUSR1);
    gort_signal_stop(ints);
    gort_chan_release(ints);
    snprintf(addr, sizeof addr, "unix:@end-stress-%d-%d", (int)getpid(), (int)(r % KIN));
    int fd = gort_listen(addr, 1);
    if (fd >= 0) {
        gort_local_addr(fd, local, sizeof local);
        gort_close(fd);
    }
    gort_pool_put(pool, gort_pool_get(pool));
    gort_free(gort_alloc(r % 500));
    still(mine);
}

static void start_one(void *arg);
static void with_goroutines(int mine, uint64_t r) {
    int e = 0;
    if (r % 64 == 0) e = gort_maxprocs(1 + (int)(r >> 8) % 4);
    else if (r & 1) e = gort_go(nothing, (void *)(intptr_t)get(&round_no));
    else gort_count();
    CHECKF(e >= 0 || e == -ENOMEM || e == -ENOTCONN, "with_goroutines: %d", e);
    still(mine);
}

typedef void doing(int mine, uint64_t r);
static doing *const both[] = {with_mutex, with_rwmutex, with_cond, with_sem, with_wg, with_chan, with_select, with_time,
                              with_ctx, with_descriptors, with_house, with_goroutines};
enum { BOTH = sizeof both / sizeof both[0] };

/* ---- what only goroutines do -------------------------------------------------------------------- */

/* The text of its error is the thread's: for TSan, who frees it races with who wrote it, another goroutine. */
static void in_loader(void) {
#ifndef __SANITIZE_THREAD__
    dlsym(RTLD_DEFAULT, "no_such_name");
#endif
}

static void in_libc(int mine, uint64_t r) {
    for (unsigned i = 0; i < r % 400; i++) {
        fprintf(null, "%d %s %g\n", (int)i, "a line", 1.5 * i);
        void *p = malloc(1 + r % 3000);
        if (i % 16 == 0) in_loader();
        free(p);
        still(mine);
    }
}

static uint64_t spun;
static void in_loop(int mine, uint64_t r) {
    bool for_ever = r % 8 == 0;
    for (uint64_t i = 0; for_ever || i < r % 3000000; i++) {
        __atomic_store_n(&spun, i, __ATOMIC_RELAXED);
        if (i % 64 == 0) still(mine);
    }
}

static void unannounced(int mine, uint64_t r) {
#ifdef __SANITIZE_THREAD__
    return; /* there such a goroutine comes back after the end, to its next call (init.c) */
#endif
    usleep((useconds_t)(r % 20000));
    still(mine);
    in_loop(mine, r >> 8 | 1);
}

static long naps(void *arg) {
    usleep((useconds_t)(intptr_t)arg);
    return 0;
}
static void in_call(int mine, uint64_t r) {
    if (r & 1) {
        gort_blocking(naps, (void *)(intptr_t)(r % 2000));
    } else {
        gort_enter_syscall();
        usleep((useconds_t)(r % 2000));
        gort_exit_syscall();
    }
    still(mine);
}

static void locked(int mine, uint64_t r) {
    gort_lock_thread();
    both[r % BOTH](mine, r >> 8);
    gort_unlock_thread();
}

static void stops_world(int mine, uint64_t r) {
    gort_stop_world();
    still(mine);
    if (r & 1) fprintf(null, "the world stands\n");
    gort_start_world();
}

static doing *const alone[] = {in_libc, in_loop, unannounced, in_call, locked, stops_world};
enum { ALONE = sizeof alone / sizeof alone[0] };

static void start_one(void *arg) {
    int mine = get(&round_no);
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (;;) {
        uint64_t r = test_random(&seed) >> 4, what = r % 64;
        still(mine);
        if (what < ALONE) alone[what](mine, r >> 8);
        else both[what % BOTH](mine, r >> 8);
        __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    }
}

/* ---- rounds ------------------------------------------------------------------------------------ */

static void *plain_thread(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    while (!get(&quit)) {
        if (get(&hold)) {
            add(&held, 1);
            wait_until(!get(&hold));
            add(&held, -1);
        }
        uint64_t r = test_random(&seed) >> 4;
        both[r % BOTH](0, r >> 8);
        __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int body(int argc, char **argv) {
    uint64_t seed = (uint64_t)(uintptr_t)argv;
    uint64_t r = test_random(&seed) >> 4;
    CHECK_EQ(gort_id(), 1);
    int n = 1 + (int)(r % MOST);
    for (int i = 0; i < n; i++) gort_go(start_one, (void *)(uintptr_t)(test_random(&seed) | 1));
    switch ((r >> 8) % 4) {
        case 0: break;
        case 1: gort_yield(); break;
        case 2: gort_sleep((int64_t)((r >> 16) % 300) * GORT_US); break;
        default: gort_sleep((int64_t)((r >> 16) % 15000) * GORT_US); break;
    }
    return 0;
}

/* Whatever a dead goroutine held is released for it; then the object is as new. */
static void mutex_at_rest(gort_mutex *mu) {
    if (gort_mutex_try_lock(mu) < 0) gort_mutex_unlock(mu);
    else gort_mutex_unlock(mu);
    CHECKF(AT_REST(*mu) == 0, "a mutex in state %x after the end", mu->state_);
}

static void rwmutex_at_rest(gort_rwmutex *rw) {
    while (rw->readers_ >= 4) gort_rwmutex_runlock(rw);
    if (rw->readers_ & 1) gort_rwmutex_unlock(rw);
    mutex_at_rest(&rw->w_); /* a writer that died before it was announced */
    CHECKF(rw->readers_ == 0, "an rwmutex in state %x after the end", (unsigned)rw->readers_);
}

static void everything_at_rest(void) {
    uint64_t v;
    for (int i = 0; i < KIN; i++) {
        mutex_at_rest(&mutexes[i]);
        mutex_at_rest(&cond_mutexes[0][i]);
        mutex_at_rest(&cond_mutexes[1][i]);
        rwmutex_at_rest(&rwmutexes[i]);
        CHECKF(conds[i].head_ == NULL, "somebody waits on a condition after the end");
        CHECKF(sems[i].head_ == NULL, "somebody waits for a semaphore after the end");
        CHECKF(sems[i].permits_ <= 6, "a semaphore has %lld permits", (long long)sems[i].permits_);
        sems[i].permits_ = 6;
        CHECKF(wgs[i].waiters_ == NULL, "somebody waits for a wait group after the end");
        wgs[i] = (gort_wg){0};
        while (gort_chan_try_recv(chans[i], &v) == 0) continue;
        gort_chan_release(chans[i]); /* fatal where somebody waits */
        chans[i] = gort_chan_new(sizeof(uint64_t), (size_t)i);
    }
}

static void libc_is_free(void) {
    fprintf(null, "between two runtimes\n");
    fflush(null);
    free(malloc(100));
    in_loader();
}

static void one_round(uint64_t *seed) {
    add(&round_no, 1);
    CHECK_EQ(gort_main(body, 0, (char **)(uintptr_t)(test_random(seed) | 1)), 0);
    set(&over, get(&round_no));
    CHECK_EQ(gort_count(), 0);
    CHECK_EQ(gort_go(nothing, NULL), -ENOTCONN);
    libc_is_free();
    set(&hold, 1);
    wait_until(get(&held) == THREADS);
    everything_at_rest();
    gort_ctx_release(ctx);
    ctx = gort_ctx_new(NULL);
    set(&hold, 0);
    wait_until(get(&held) == 0);
    rounds++;
}

int main(int argc, char **argv) {
    uint64_t seed = stress_args(argc, argv);
    pthread_t threads[THREADS];
    null = fopen("/dev/null", "w");
    pool = gort_pool_new(NULL, NULL, NULL);
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < KIN; i++) {
        chans[i] = gort_chan_new(sizeof(uint64_t), (size_t)i);
        sems[i].permits_ = 6;
        CHECK_EQ(pipe(pipes[i]), 0);
    }
    ctx = gort_ctx_new(NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, plain_thread, (void *)(uintptr_t)(test_random(&seed) | 1)), 0);
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    while (gort_now() < until) one_round(&seed);
    set(&quit, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%" PRIu64 " runtimes, %" PRIu64 " steps\n", rounds, steps);
    return 0;
}
