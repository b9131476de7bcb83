/*
 * What a test needs, and no more. A test is a program: it exits with 0 when everything held, with
 * 77 when it cannot be run here, with anything else when something is wrong, and says what.
 *
 * Nothing in here waits for time to pass: wait_until() waits for a condition, and the runner's
 * time limit (tests/run) is the only bound. So a test can be slow on a slow machine, but not wrong.
 */
#ifndef GORT_TEST_H
#define GORT_TEST_H

#include <gort.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The bits of a mutex that tell of somebody; the rest is a count (mutex.c). */
#define AT_REST(mu) ((mu).state_ & 0xff)

#define TEST_UNUSED __attribute__((unused))

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true /* by one that has hooks in libc, and keeps books of threads and stacks */
#else
#define SANITIZED false
#endif

/* Repetitions are divided by this where each costs a hundred times as much: TSan makes a thread's
 * worth of shadow for every goroutine. */
#ifdef __SANITIZE_THREAD__
#define TEST_SCALE 20
#else
#define TEST_SCALE 1
#endif

/* Prints file:line and a message, and ends the program as failed. Any goroutine, any thread. */
#define FAILF(...)                                      \
    do {                                                \
        fflush(stdout);                                 \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fprintf(stderr, "\n");                          \
        _Exit(1);                                       \
    } while (0)

/* Ends the program as skipped; the reason is printed. */
#define SKIP(...)            \
    do {                     \
        printf("skipped: "); \
        printf(__VA_ARGS__); \
        printf("\n");        \
        fflush(stdout);      \
        _Exit(77);           \
    } while (0)

#define CHECK(cond)                                    \
    do {                                               \
        if (!(cond)) FAILF("CHECK failed: %s", #cond); \
    } while (0)

/* As CHECK, with a message of its own: CHECKF(n == 3, "n is %d", n). */
#define CHECKF(cond, ...)                                 \
    do {                                                  \
        if (!(cond)) {                                    \
            fprintf(stderr, "CHECK failed: %s\n", #cond); \
            FAILF(__VA_ARGS__);                           \
        }                                                 \
    } while (0)

/* Integers: both values are shown. Each side is evaluated once. */
#define TEST_COMPARE_(a, op, b)                                                            \
    do {                                                                                   \
        long long a_ = (long long)(a), b_ = (long long)(b);                                \
        if (!(a_ op b_)) FAILF("%s %s %s does not hold: %lld, %lld", #a, #op, #b, a_, b_); \
    } while (0)
#define CHECK_EQ(a, b) TEST_COMPARE_(a, ==, b)
#define CHECK_NE(a, b) TEST_COMPARE_(a, !=, b)
#define CHECK_GE(a, b) TEST_COMPARE_(a, >=, b)
#define CHECK_LE(a, b) TEST_COMPARE_(a, <=, b)
#define CHECK_GT(a, b) TEST_COMPARE_(a, >, b)
#define CHECK_LT(a, b) TEST_COMPARE_(a, <, b)

#define CHECK_STR(a, b)                                                         \
    do {                                                                        \
        const char *a_ = (a), *b_ = (b);                                        \
        if (strcmp(a_, b_) != 0) FAILF("%s is \"%s\", not \"%s\"", #a, a_, b_); \
    } while (0)

/* One step of waiting. A goroutine lets others run, then naps so that a machine with few cores is
 * not kept busy by the wait; a plain thread naps. */
TEST_UNUSED static void test_pause(unsigned round) {
    struct timespec nap = {0, 200000};
    if (gort_id() == 0) nanosleep(&nap, NULL);
    else if (round < 50) gort_yield();
    else gort_sleep(200 * GORT_US);
}

/* Waits until the condition holds. What it reads must be atomic or guarded. */
#define wait_until(cond)                                                 \
    do {                                                                 \
        for (unsigned round_ = 0; !(cond); round_++) test_pause(round_); \
    } while (0)

/* The memory orders tests need, short enough to be read: everything sequentially consistent. */
#define get(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define set(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST) /* the new value */

/* In a simulation (make test-seeds): what plain threads do, and what is done without a runtime, is
 * not simulated and is left out. */
TEST_UNUSED static bool test_simulated(void) {
    const char *s = getenv("GORT_SIM");
    return s && *s;
}

/* Under memcheck (make test-valgrind), which runs one thread at a time, forty times as slowly. */
TEST_UNUSED static bool test_valgrind(void) {
    const char *s = getenv("VALGRIND");
    return s && *s;
}

/* GORT_MAXPROCS as the runner has set it; 0 if it has not. */
TEST_UNUSED static int test_procs(void) {
    const char *s = getenv("GORT_MAXPROCS");
    return s ? atoi(s) : 0;
}

/* ---- stress: for how long, and from which seed ---------------------------------------------- */

/* STRESS_SECONDS, 1 by default: `make test-stress SECONDS=n` sets it. */
TEST_UNUSED static int stress_seconds(void) {
    const char *s = getenv("STRESS_SECONDS");
    int n = s ? atoi(s) : 1;
    return n > 0 ? n : 1;
}

/* STRESS_SEED to repeat a run, else a new one; printed, so that a failure can be repeated. */
TEST_UNUSED static uint64_t stress_seed(void) {
    const char *s = getenv("STRESS_SEED");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t seed =
        s ? strtoull(s, NULL, 0) : (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
    if (seed == 0) seed = 1;
    printf("STRESS_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

/* xorshift*: a state per goroutine; never 0. */
TEST_UNUSED static uint64_t test_random(uint64_t *state) {
    uint64_t x = *state ? *state : 88172645463325252u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Du;
}

#endif
