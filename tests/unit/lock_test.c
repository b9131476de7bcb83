/* Lock excludes, a note is neither lost nor kept for the next sleeper. */
#include "base/lock.h"
#include "os/os.h"
#include "../lib/test.h"

#include <pthread.h>

#define INSIDE __attribute__((noinline, no_sanitize("thread")))

enum { THREADS = 4, TURNS = 20000 };

static Lock guard;
static long counter, inside, tries;

INSIDE static void *locker(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        if (i % 4 == 3 && !try_lock(&guard, RANK_LEAF)) {
            add(&tries, 1);
            continue;
        }
        if (i % 4 != 3) lock(&guard, RANK_LEAF);
        CHECK_EQ(inside, 0);
        inside = 1;
        counter++;
        if (i % 1000 == 0) os_yield(); /* a holder that loses its CPU */
        inside = 0;
        unlock(&guard);
    }
    return NULL;
}

INSIDE static void excludes(void) {
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&t[i], NULL, locker, NULL), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(counter, THREADS * TURNS - tries);
    lock(&guard, RANK_LEAF);
    CHECK(!try_lock(&guard, RANK_LEAF));
    unlock(&guard);
    CHECK(try_lock(&guard, RANK_LEAF));
    unlock(&guard);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static Note ping, pong;
static int turn;

INSIDE static void *partner(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        note_sleep(&ping);
        CHECK_EQ(turn, 2 * i + 1);
        turn++; /* plain: the note orders it */
        note_wake(&pong);
    }
    return NULL;
}

INSIDE static void hand_over(void) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, partner, NULL), 0);
    for (int i = 0; i < TURNS; i++) {
        turn++;
        note_wake(&ping);
        note_sleep(&pong);
        CHECK_EQ(turn, 2 * i + 2);
    }
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static void alone(void) {
    Note n = {0};
    CHECK(!note_sleep_until(&n, 0)); /* passed */
    int64_t deadline = os_now() + 2 * GORT_MS;
    CHECK(!note_sleep_until(&n, deadline));
    CHECK_GE(os_now(), deadline);
    note_wake(&n);
    note_wake(&n); /* one-shot: twice is once */
    note_sleep(&n);
    CHECK(!note_sleep_until(&n, 0));
    note_wake(&n);
    CHECK(note_sleep_until(&n, 0)); /* before the deadline is looked at */
}

/* A wake-up at the very moment of the deadline is either the answer, or still there. */
static Note timed;
static int asked;

INSIDE static void *waker(void *arg) {
    for (int i = 1; i <= 3000; i++) {
        while (get(&asked) != i) os_yield();
        if (i % 2) os_nap(20 * GORT_US);
        note_wake(&timed);
    }
    return NULL;
}

INSIDE static void never_lost(void) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, waker, NULL), 0);
    int late = 0;
    for (int i = 1; i <= 3000; i++) {
        set(&asked, i);
        if (note_sleep_until(&timed, os_now() + i % 100 * GORT_US)) continue;
        late++;
        note_sleep(&timed);
    }
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK(!note_sleep_until(&timed, 0));
    printf("%d came after the deadline\n", late);
}

int main(void) {
    excludes();
    hand_over();
    alone();
    never_lost();
    return 0;
}
