/* The heap of timers against a plain list: what is due, in which order, what was taken off; and
 * from several threads, that each timer fires or is deleted, exactly once. No runtime runs here:
 * a P and an M of our own, and the time is a number. */
#include "sched/timer.h"
#include "../lib/test.h"

#include <pthread.h>
#include <sys/resource.h>

#define INSIDE __attribute__((noinline, no_sanitize("thread")))

enum { TIMERS = 1400, STEPS = 60000 };

static P ps[2];
static M us;
static Timer timers[TIMERS];

static void nothing(M *m, void *arg, uint32_t seq) {}

INSIDE static void check_heap(TimerHeap *h) {
    for (uint32_t i = 0; i < h->count; i++) {
        TimerSlot *slot = &h->slots[h->at[i].slot];
        CHECK_EQ(slot->place, i);
        CHECK_EQ(slot->timer->slot, h->at[i].slot);
        CHECK(slot->timer->heap == h);
        CHECK_EQ(slot->timer->when, h->at[i].when);
        if (i > 0) CHECK_LE(h->at[(i - 1) / 4].when, h->at[i].when);
    }
    if (h->chain) CHECK_EQ(h->count, h->capacity);
    for (Timer *t = h->chain; t; t = t->next) {
        CHECK(t->heap == h && t->slot == UINT32_MAX);
        CHECK_LE(h->at[0].when, t->when);
        if (t->next) CHECK_LE(t->when, t->next->when);
    }
    CHECK_EQ(h->first, h->count ? h->at[0].when : GORT_FOREVER);
}

static Timer *earliest(void) {
    Timer *least = NULL;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].heap && (least == NULL || timers[i].when < least->when)) least = &timers[i];
    return least;
}

static void arm(int i, int64_t when) {
    timers[i] = (Timer){.when = when, .fn = nothing, .arg = &timers[i], .seq = (uint32_t)when};
    CHECK_EQ(timer_add(&us, &timers[i]), 0);
}

/* Takes one at that time, and checks that it is what a plain search finds. */
static bool take(int64_t now) {
    timer_fn *fn;
    void *arg;
    uint32_t seq;
    Timer *least = earliest();
    int64_t when = least ? least->when : GORT_FOREVER;
    bool got = timer_take(&ps[0].timers, now, &fn, &arg, &seq);
    CHECK_EQ(got, when <= now);
    if (!got) return false;
    Timer *t = arg;
    CHECK(fn == nothing);
    CHECK(t->heap == NULL);
    CHECK_EQ(t->when, when);
    CHECK_EQ(seq, (uint32_t)when);
    CHECK(!timer_del(t)); /* it has fired */
    return true;
}

static void as_a_list(int64_t far) {
    uint64_t seed = 99;
    int64_t now = 1000;
    for (int step = 0; step < STEPS; step++) {
        uint64_t r = test_random(&seed) >> 8;
        int i = (int)((r >> 8) % TIMERS);
        if (r % 4 < 2 && timers[i].heap == NULL) {
            arm(i, now + (int64_t)(r >> 20) % far);
        } else if (r % 4 == 2) {
            bool was = timers[i].heap != NULL;
            CHECK_EQ(timer_del(&timers[i]), was);
            CHECK(timers[i].heap == NULL);
        } else {
            now += (int64_t)(r >> 20) % 8;
            while (take(now)) continue;
        }
        if (step % 50 == 0) check_heap(&ps[0].timers);
    }
}

static void moved_and_cleared(void) {
    int armed = 0;
    for (int i = 0; i < TIMERS; i++) timer_del(&timers[i]);
    CHECK_EQ(ps[0].timers.count, 0);
    us.p = &ps[1];
    for (int i = 0; i < TIMERS; i += 2, armed++) arm(i, 9000 - i);
    us.p = &ps[0];
    for (int i = 1; i < TIMERS; i += 4, armed++) arm(i, 4000 + i);
    CHECK_EQ(timers_first(), 4001);
    timers_move(&ps[0].timers, &ps[1].timers);
    check_heap(&ps[0].timers);
    check_heap(&ps[1].timers);
    if (ps[0].timers.chain == NULL) CHECK_EQ(ps[0].timers.count, armed);
    CHECK_EQ(ps[1].timers.count, 0);
    for (int i = 0; i < 100; i++) CHECK(take(6000));
    CHECK(timer_del(&timers[0]));
    timers_clear(&ps[0].timers);
    check_heap(&ps[0].timers);
    for (int i = 0; i < TIMERS; i++) CHECK(!timer_del(&timers[i]));
    CHECK_EQ(timers_first(), GORT_FOREVER);
}

/* Without memory the arrays stay as they are: what has no place is chained. Then there is some
 * again. */
TEST_UNUSED static void without_memory(void) {
    struct rlimit had, none;
    CHECK_EQ(getrlimit(RLIMIT_AS, &had), 0);
    none = (struct rlimit){1, had.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
    as_a_list(50000);
    CHECK(ps[0].timers.chain != NULL);
    moved_and_cleared();
    CHECK_EQ(ps[0].timers.capacity, 512);
    for (int i = 0; i < TIMERS; i++) arm(i, 7000 - i);
    CHECK(ps[0].timers.chain != NULL);
    CHECK_EQ(setrlimit(RLIMIT_AS, &had), 0);
    CHECK(timer_del(&timers[3]));
    arm(3, 1);
    check_heap(&ps[0].timers);
    CHECK(ps[0].timers.chain == NULL);
    for (int i = 0; i < TIMERS; i++) CHECK(take(8000));
}

static void at_the_end_of_time(void) {
    arm(0, GORT_FOREVER - 1);
    arm(1, -5); /* before the clock began: due (callers' sums do not overflow: deadline.h) */
    arm(2, 10);
    CHECK_EQ(timers_first(), -5);
    CHECK(take(0));
    CHECK_EQ(timers_first(), 10);
    CHECK(take(GORT_FOREVER / 2 + 100));
    check_heap(&ps[0].timers);
    CHECK_EQ(timers_first(), GORT_FOREVER - 1);
    timers_clear(&ps[0].timers);
}

/* ---- several threads ------------------------------------------------------------------------- */

static uint32_t fired[TIMERS], deleted[TIMERS], armings[TIMERS];
static int stop;

INSIDE static void *taker(void *arg) {
    timer_fn *fn;
    void *at;
    uint32_t seq;
    while (!get(&stop))
        while (timer_take(&ps[0].timers, 100, &fn, &at, &seq)) add(&fired[(Timer *)at - timers], 1);
    return NULL;
}

/* Each has the timers of its own residue, as a goroutine has its deadline. */
INSIDE static void *armer(void *arg) {
    int mine = (int)(intptr_t)arg;
    M m = {.p = &ps[0], .locks = 1};
    uint64_t seed = (uint64_t)mine + 1;
    for (int step = 0; step < 20000; step++) {
        int i = (int)(test_random(&seed) % (TIMERS / 2)) * 2 + mine;
        Timer *t = &timers[i];
        if (load_acq(&t->heap) == NULL) {
            *t = (Timer){.when = (int64_t)(test_random(&seed) % 200), .fn = nothing, .arg = t};
            CHECK_EQ(timer_add(&m, t), 0);
            armings[i]++;
        } else if (timer_del(t)) {
            deleted[i]++;
        }
    }
    for (int i = mine; i < TIMERS; i += 2)
        if (timer_del(&timers[i])) deleted[i]++;
    return NULL;
}

static void once_each(void) {
    pthread_t t[4];
    memset(timers, 0, sizeof timers);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, armer, (void *)(intptr_t)i), 0);
    for (int i = 2; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, taker, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    set(&stop, 1);
    for (int i = 2; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    check_heap(&ps[0].timers);
    CHECK_EQ(ps[0].timers.count, 0);
    for (int i = 0; i < TIMERS; i++) CHECK_EQ(fired[i] + deleted[i], armings[i]);
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        ps[i].timers.first = GORT_FOREVER;
        CHECK(timers_prepare(&ps[i].timers));
        sched.ps[i] = &ps[i];
    }
    store_rlx(&sched.procs, 2);
    store_rlx(&sched.polled_at, 1); /* nobody waits in the poller */
    us = (M){.p = &ps[0], .locks = 1};
#ifndef __SANITIZE_THREAD__
    without_memory();
#endif
    as_a_list(500);
    moved_and_cleared();
    at_the_end_of_time();
    once_each();
    return 0;
}
