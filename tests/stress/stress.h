/*
 * What the stress programs share: their arguments, and tokens. A token stands for one goroutine: it
 * is drawn when the goroutine is started and handed in when it runs. One that is handed in twice is
 * found at once, one that is never handed in by the end of the wave, which waits for all of them.
 */
#ifndef GORT_STRESS_H
#define GORT_STRESS_H

#include "../lib/test.h"

#include <stdbool.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRESS_SLOW 8 /* fibers cost a mapping each: smaller waves */
#else
#define STRESS_SLOW 1
#endif

/* Goroutines of one wave. TSan knows at most 8128 threads and goroutines at once. */
#ifdef __SANITIZE_THREAD__
#define TOKENS 2500
#else
#define TOKENS (1 << 16)
#endif

static uint64_t token_id[TOKENS]; /* the goroutine's id once it ran; 0: not yet */
static uint32_t token_next, token_ended;

/* program [seconds [seed]]: the same as STRESS_SECONDS and STRESS_SEED. */
TEST_UNUSED static uint64_t stress_args(int argc, char **argv) {
    if (argc > 1) setenv("STRESS_SECONDS", argv[1], 1);
    if (argc > 2) setenv("STRESS_SEED", argv[2], 1);
    return stress_seed();
}

/* A token, or -1 when the wave has used all of them. */
TEST_UNUSED static int token_draw(void) {
    uint32_t t = __atomic_fetch_add(&token_next, 1, __ATOMIC_RELAXED);
    if (t < TOKENS) return (int)t;
    __atomic_fetch_sub(&token_next, 1, __ATOMIC_RELAXED);
    return -1;
}

/* The first thing a goroutine does. */
TEST_UNUSED static void token_run(int t) {
    uint64_t id = gort_id(), before = 0;
    CHECKF(id != 0, "token %d runs outside a goroutine", t);
    CHECKF(__atomic_compare_exchange_n(&token_id[t], &before, id, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST),
           "token %d runs in goroutine %" PRIu64 " and ran in %" PRIu64 " before", t, id, before);
}

/* The last thing. Pinned: a thread that sleeps in the kernel between two calls of ours, over a page
 * fault or in a lock of TSan's, may lose its P to a stop of the world and then runs on to its next
 * call (stopworld.c). One that is pinned is waited for, so whoever has stopped the world may rely
 * on it that none ends. */
TEST_UNUSED static void token_end(int t) {
    CHECKF(get(&token_id[t]) == gort_id(),
           "token %d began in goroutine %" PRIu64 " and ends in %" PRIu64, t, get(&token_id[t]),
           gort_id());
    gort_pin();
    add(&token_ended, 1);
    gort_unpin();
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Waits until every token drawn has ended: each ran once, and no two goroutines had the same id.
 * The next wave begins. Only goroutines with a token may draw meanwhile. */
TEST_UNUSED static uint32_t tokens_settle(void) {
    /* Whoever draws has a token that has not ended: so these are equal only when all is over. */
    wait_until(get(&token_ended) == get(&token_next));
    uint32_t n = get(&token_ended);
    for (uint32_t i = 0; i < n; i++) CHECKF(token_id[i] != 0, "token %u was lost", i);
    qsort(token_id, n, sizeof token_id[0], by_value);
    for (uint32_t i = 1; i < n; i++)
        CHECKF(token_id[i] != token_id[i - 1], "id %" PRIu64 " was given twice", token_id[i]);
    memset(token_id, 0, n * sizeof token_id[0]);
    set(&token_next, 0);
    gort_pin(); /* as in token_end */
    set(&token_ended, 0);
    gort_unpin();
    return n;
}

#endif
