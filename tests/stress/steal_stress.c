/*
 * Work that only others can do: steal_stress [seconds [seed]]
 *
 * A pinned goroutine starts a burst and stays on its P, pinned, until all of it has run. So every
 * goroutine of the burst, the one in the LIFO slot included, must be found by another P: stolen
 * from the ring, or taken from the global queue when the burst overflowed the ring (more than 256).
 * A wake-up that is lost, between the submit of the burst and a thread that gives up searching,
 * leaves them there, and the runner's limit shows it. With a single P there are no others: the
 * burst runs after unpinning. Each goroutine of a burst has a token and may start one more, on the
 * thief's own ring.
 */
#include "stress.h"

static uint64_t base_seed, total;

static void run_item(void *arg) {
    uint64_t packed = (uint64_t)(uintptr_t)arg, seed = packed >> 20;
    int token = (int)(packed & 0xfffff);
    token_run(token);
    for (volatile uint64_t i = 0; i < seed % 64; i++) continue;
    if (seed % 4 == 0) {
        int child = token_draw();
        if (child >= 0)
            CHECK_EQ(gort_go(run_item, (void *)(uintptr_t)((seed | 1) << 20 | (uint64_t)child)), 0);
    }
    if (seed % 16 == 2) gort_yield();
    token_end(token);
}

static void burst(uint64_t *seed, int procs) {
    static const int sizes[] = {1, 2, 3, 10, 127, 128, 129, 255, 256, 257, 258, 385, 700};
    int n = sizes[test_random(seed) % (sizeof sizes / sizeof sizes[0])];
    if (STRESS_SLOW > 1 && n > 300) n = 260;
    /* Now and then the others are surely asleep, else they search while the burst grows. */
    if (test_random(seed) % 4 == 0) gort_sleep(200 * GORT_US);
    gort_pin();
    for (int i = 0; i < n; i++) {
        int token = token_draw();
        CHECK(token >= 0);
        uint64_t s = test_random(seed) >> 30;
        CHECK_EQ(gort_go(run_item, (void *)(uintptr_t)(s << 20 | (uint64_t)token)), 0);
    }
    while (procs > 1 && get(&token_ended) != get(&token_next)) continue;
    gort_unpin();
    total += tokens_settle();
}

static int body(int argc, char **argv) {
    uint64_t seed = base_seed;
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    int procs = gort_maxprocs(0), now = procs;
    gort_stats s;
    for (int i = 0; gort_now() < until || i < 20; i++) {
        burst(&seed, now);
        if (i % 64 == 63) { /* a P comes or goes */
            now = 1 + (int)(test_random(&seed) % (uint64_t)(procs + 1));
            gort_maxprocs(now);
        }
    }
    gort_maxprocs(procs);
    gort_stats_read(&s);
    if (procs > 1) CHECK_GT(s.steals, 0);
    CHECK_GE(s.stolen, s.steals);
    printf("%" PRIu64 " goroutines, %" PRIu64 " steals of %" PRIu64 ", %" PRIu64 " overflows\n",
           total, s.steals, s.stolen, s.overflows);
    return 0;
}

int main(int argc, char **argv) {
    base_seed = stress_args(argc, argv);
    return gort_main(body, argc, argv);
}
