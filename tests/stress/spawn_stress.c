/*
 * Goroutines begin and end in every way there is: spawn_stress [seconds [seed]]
 *
 * Waves of trees: a goroutine starts up to three others by a way drawn from its seed, some yield,
 * sleep, lock their thread or end by gort_exit from within calls. Plain threads start some too.
 * Another goroutine changes the number of Ps and stops the world all the while. Each goroutine
 * holds a token (stress.h), so that none is lost and none runs twice. The runtime is started anew
 * several times. What a goroutine finds on its stack (its copy, its name's room) is checked at its
 * end.
 */
#include "stress.h"

#include <pthread.h>

enum { DEPTH = 6, THREADS = 2 };

typedef struct Job {
    int token, depth;
    uint64_t seed, pattern[8];
} Job;

static int churn_stop, threads_stop;
static uint64_t total, base_seed;

static void start(uint64_t *seed, int depth);

/* the compiler need not know that it ends here */
static void (*volatile leave_it)(void) = gort_exit;

static int deep_exit(int n, Job *j) {
    volatile char room[200];
    room[n] = (char)n;
    if (n > 0) return deep_exit(n - 1, j) + room[n]; /* not a tail call */
    token_end(j->token);
    leave_it();
    return 0;
}

/* What every one of them does. Returns at the end of its function, or ends here. */
static void live(Job *j) {
    uint64_t seed = j->seed;
    token_run(j->token);
    for (int children = (int)(test_random(&seed) % 4); children > 0 && j->depth > 0; children--) {
        start(&seed, j->depth - 1);
        if (test_random(&seed) % 8 == 0) gort_yield();
    }
    uint64_t r = test_random(&seed) >> 8;
    if (r % 4 == 0) gort_yield();
    if (r % 64 == 1) gort_sleep((int64_t)(r >> 8) % 50 * GORT_US);
    bool locked = r % 512 == 2, keeps = locked && r % 1024 == 2;
    if (locked) {
        gort_lock_thread();
        gort_yield();
        if (!keeps) gort_unlock_thread(); /* else the thread goes with it */
    }
    for (int i = 0; i < 8; i++) CHECK_EQ(j->pattern[i], j->seed * (uint64_t)(i + 3));
    if (r % 16 == 3) deep_exit((int)((r >> 8) % 10), j);
    token_end(j->token);
}

static void live_and_free(void *arg) {
    Job j = *(Job *)arg;
    free(arg);
    live(&j);
}
static void live_on_copy(void *arg) {
    CHECK_EQ((uintptr_t)arg % 16, 0);
    live(arg);
}

static void start(uint64_t *seed, int depth) {
    int token = token_draw();
    if (token < 0) return;
    uint64_t s = test_random(seed) | 1, way = s >> 32;
    Job j = {token, depth, s, {0}};
    for (int i = 0; i < 8; i++) j.pattern[i] = s * (uint64_t)(i + 3);
    if (way % 4 == 0) {
        CHECK_EQ(gort_go_copy(live_on_copy, &j, sizeof j), 0);
        return;
    }
    Job *heap = malloc(sizeof j);
    CHECK(heap != NULL);
    *heap = j;
    gort_attr attr = {.name = way % 8 == 1 ? "a name of its own" : NULL,
                      .stack_size = way % 32 == 5 ? (size_t)(way >> 8) % 300000 : 0};
    if (way % 4 == 1) CHECK_EQ(gort_go_with(&attr, live_and_free, heap), 0);
    else CHECK_EQ(gort_go(live_and_free, heap), 0);
}

/* ---- what happens meanwhile ------------------------------------------------------------------ */

static void churn(void *arg) {
    uint64_t seed = base_seed ^ 77;
    int procs = gort_maxprocs(0);
    while (!get(&churn_stop)) {
        uint64_t r = test_random(&seed) >> 8;
        if (r % 2) {
            gort_stop_world();
            uint32_t before = get(&token_ended);
            /* a thread wakes in 50 us */
            for (volatile int i = (int)((r >> 8) % 200000); i > 0; i--) continue;
            /* plain threads end none, goroutines only pinned */
            CHECK_EQ(get(&token_ended), before);
            gort_start_world();
        } else {
            CHECK_GE(gort_maxprocs(1 + (int)((r >> 8) % (uint64_t)(procs + 2))), 1);
        }
        gort_sleep(500 * GORT_US);
    }
    gort_maxprocs(procs);
    set(&churn_stop, 2);
}

static void *plain_thread(void *arg) {
    uint64_t seed = base_seed ^ (uint64_t)(uintptr_t)arg;
    while (!get(&threads_stop)) {
        for (int i = 0; i < 20 / STRESS_SLOW + 1; i++) start(&seed, 2);
        struct timespec nap = {0, 100000};
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void wave(uint64_t *seed) {
    pthread_t threads[THREADS];
    set(&threads_stop, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, plain_thread, (void *)(intptr_t)(i + 1)), 0);
    int roots = (int)(test_random(seed) % 600) / STRESS_SLOW + 1;
    for (int i = 0; i < roots; i++) start(seed, DEPTH);
    set(&threads_stop, 1);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    total += tokens_settle();
}

static int64_t until;

static int body(int argc, char **argv) {
    uint64_t seed = base_seed;
    set(&churn_stop, 0);
    CHECK_EQ(gort_go(churn, NULL), 0);
    do wave(&seed);
    while (gort_now() < until);
    set(&churn_stop, 1);
    wait_until(get(&churn_stop) == 2);
    wait_until(gort_count() == 1);
    return 0;
}

int main(int argc, char **argv) {
    base_seed = stress_args(argc, argv);
    int64_t begin = gort_now();
    enum { RUNS = 4 };
    for (int run = 0; run < RUNS; run++) {
        until = begin + stress_seconds() * GORT_SEC * (run + 1) / RUNS;
        CHECK_EQ(gort_main(body, argc, argv), 0);
        base_seed = base_seed * 6364136223846793005u + 1;
    }
    printf("%" PRIu64 " goroutines, each ran once\n", total);
    return 0;
}
