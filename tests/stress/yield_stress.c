/*
 * Goroutines that give way to each other in every way: yield_stress [seconds [seed]]
 *
 * Each counts its turns; between two turns it yields, sleeps, passes a message, waits for a mutex,
 * or spins until it is preempted. Turns come in rounds: nobody may be more than one round ahead, so
 * one that is lost or starved stops all of them, and the runner's limit shows the dump. While a
 * goroutine has its turn it holds its own flag: another thread that resumes it at the same time
 * finds the flag taken. errno must follow the goroutine, and stay on its thread what is locked to
 * it.
 */
#include "stress.h"

#include <errno.h>
#include <pthread.h>

enum { WORKERS = 48, PAIRS = WORKERS / 2 };

typedef struct Worker {
    int index, running;
    uint64_t turns, seed;
} Worker;

static Worker workers[WORKERS];
static gort_chan *pair[PAIRS];
static gort_mutex mutex;
static uint64_t guarded;
static int stop, arrived, ended;
static uint32_t round_now;

/* Where errno is depends on the thread. TSan takes it for one variable of the goroutine's. */
#define OUT_OF_SIGHT __attribute__((noinline, no_sanitize("thread")))
OUT_OF_SIGHT static void set_errno(int e) { errno = e; }
OUT_OF_SIGHT static int get_errno(void) { return errno; }

static void begin_turn(Worker *w) {
    CHECKF(__atomic_exchange_n(&w->running, 1, __ATOMIC_SEQ_CST) == 0,
           "worker %d runs twice at once", w->index);
}
static void end_turn(Worker *w) { set(&w->running, 0); }

/* Lets others run in one of the ways. The flag is not held meanwhile. */
static void give_way(Worker *w) {
    uint64_t r = test_random(&w->seed) >> 8;
    set_errno(w->index + 1);
    end_turn(w);
    switch (r % 16) {
    case 0: gort_sleep((int64_t)(r >> 8) % 30 * GORT_US); break;
    case 1:
        gort_mutex_lock(&mutex);
        guarded++;
        if (r & 4096) gort_yield();
        gort_mutex_unlock(&mutex);
        break;
    case 2: {
        gort_lock_thread();
        pthread_t me = pthread_self();
        gort_yield();
        CHECK(pthread_equal(me, pthread_self()));
        gort_unlock_thread();
        break;
    }
    case 3: {
        int v = w->index; /* whoever of the pair is there: capacity 1, so nobody waits for ever */
        if (gort_chan_try_send(pair[w->index / 2], &v) != 0)
            gort_chan_try_recv(pair[w->index / 2], &v);
        CHECK_EQ(v / 2, w->index / 2);
        break;
    }
    case 4:
        for (volatile int i = 0; i < (int)((r >> 8) % 20000); i++) continue;
        break;
    case 5: CHECK_EQ(gort_sem_try_acquire(&(gort_sem){0}, 1), -EBUSY); break;
    default: gort_yield();
    }
    begin_turn(w);
    CHECKF(get_errno() == w->index + 1, "worker %d has errno %d", w->index, get_errno());
}

/* Everybody has had the turns of this round, or nobody goes on. The last one decides for all
 * whether there is another. */
static bool next_round(Worker *w, uint32_t round) {
    end_turn(w);
    if (add(&arrived, 1) == WORKERS) {
        set(&arrived, 0);
        set(&round_now, get(&stop) ? UINT32_MAX : round + 1);
    }
    while (get(&round_now) == round) gort_yield();
    bool more = get(&round_now) != UINT32_MAX;
    if (more) begin_turn(w);
    return more;
}

static void work(void *arg) {
    Worker *w = arg;
    begin_turn(w);
    for (uint32_t round = 0;; round++) {
        int n = 1 + (int)(test_random(&w->seed) % 20) / (STRESS_SLOW > 1 ? 4 : 1);
        for (int i = 0; i < n; i++) {
            w->turns++;
            give_way(w);
        }
        if (!next_round(w, round)) break;
    }
    add(&ended, 1);
}

static int body(int argc, char **argv) {
    uint64_t seed = stress_args(argc, argv);
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    for (int i = 0; i < PAIRS; i++) CHECK((pair[i] = gort_chan_new(sizeof(int), 1)) != NULL);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (Worker){i, 0, 0, seed + (uint64_t)i * 7919};
        CHECK_EQ(gort_go(work, &workers[i]), 0);
    }
    int procs = gort_maxprocs(0);
    while (gort_now() < until) {
        gort_stop_world();
#ifndef __SANITIZE_THREAD__ /* it does not know that nobody else runs: no race */
        for (int i = 0; i < WORKERS; i++) workers[i].seed ^= 1;
#endif
        gort_start_world();
        gort_maxprocs(1 + (int)(test_random(&seed) % (uint64_t)(procs + 1)));
        gort_sleep(GORT_MS);
    }
    set(&stop, 1);
    wait_until(get(&ended) == WORKERS);
    uint64_t turns = 0;
    for (int i = 0; i < WORKERS; i++) turns += workers[i].turns;
    for (int i = 0; i < PAIRS; i++) gort_chan_release(pair[i]);
    printf("%" PRIu64 " turns, %" PRIu64 " under the mutex\n", turns, guarded);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
