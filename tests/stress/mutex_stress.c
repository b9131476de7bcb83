/*
 * Mutexes that have just been made, fought for, and freed: mutex_stress [seconds [seed]]
 *
 * Goroutines and plain threads go through the same row of mutexes, each of which starts without a
 * trace of contention, is locked some dozens of times by everybody (with and without a deadline,
 * or as a try), and is freed by whoever unlocks it last. So the way from the plain unlock to the
 * careful one (mutex.c) is gone thousands of times a second, from all sides. Told by:
 *   - a count in each that only the owner of the mutex changes: nobody was in it beside another;
 *   - the end: a sleeper whose mark was wiped out sleeps for ever, and the run does not end;
 *   - freed memory, which is filled with nonsense first: unlock touches nothing behind its release.
 */
#include "stress.h"

#include <pthread.h>

enum { ROW = 256, LOCKS = 40, THREADS = 2 };

typedef struct Fought {
    gort_mutex mu;
    int64_t count, wanted;
    int left;
} Fought;

static Fought *row[ROW];
static int workers, done;
static uint64_t base_seed;
static int64_t rounds, expired;

static bool locked(gort_mutex *mu, uint64_t how) {
    if (how % 8 == 0) return gort_mutex_try_lock(mu) == 0;
    if (how % 8 == 1)
        return gort_mutex_lock_until(mu, gort_now() + (int64_t)(how % 50) * GORT_US) == 0;
    gort_mutex_lock(mu);
    return true;
}

static void fight(Fought *f, uint64_t *seed) {
    int64_t mine = 0;
    for (int i = 0; i < LOCKS; i++) {
        uint64_t r = test_random(seed) >> 8;
        if (!locked(&f->mu, r)) {
            add(&expired, 1);
            continue;
        }
        int64_t c = f->count;
        if (r % 61 == 0) gort_yield(); /* with the mutex in its hands */
        for (uint64_t k = r >> 8 & 31; k > 0; k--) __asm__ volatile("" ::: "memory");
        f->count = c + 1;
        mine++;
        gort_mutex_unlock(&f->mu);
    }
    gort_mutex_lock(&f->mu);
    f->wanted += mine;
    bool last = --f->left == 0;
    CHECK(f->left >= 0 && f->left < workers);
    gort_mutex_unlock(&f->mu);
    if (!last) return;
    CHECK_EQ(f->count, f->wanted);
    memset(f, 0xA5, sizeof *f);
    free(f);
}

static void work(void *arg) {
    uint64_t seed = base_seed + (uint64_t)(intptr_t)arg * 2654435761u + (uint64_t)get(&rounds) + 1;
    for (int i = 0; i < ROW; i++) fight(row[i], &seed);
    add(&done, 1);
}
static void *thread(void *arg) {
    work(arg);
    return NULL;
}

static void round_of(int n) {
    pthread_t t[THREADS];
    for (int i = 0; i < ROW; i++) {
        CHECK((row[i] = calloc(1, sizeof *row[i])) != NULL);
        row[i]->left = n + THREADS;
    }
    workers = n + THREADS;
    set(&done, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, thread, (void *)(intptr_t)(100 + i)), 0);
    for (int i = 0; i < n; i++) CHECK_EQ(gort_go(work, (void *)(intptr_t)i), 0);
    wait_until(get(&done) == workers);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    add(&rounds, 1);
}

static int body(int argc, char **argv) {
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    do round_of(2 + (int)(get(&rounds) % 6));
    while (gort_now() < until);
    printf("%" PRId64 " mutexes, %" PRId64 " attempts given up\n", get(&rounds) * ROW,
           get(&expired));
    return 0;
}

int main(int argc, char **argv) {
    base_seed = stress_args(argc, argv);
    return gort_main(body, argc, argv);
}
