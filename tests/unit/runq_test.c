/* The local run queue: order, its 256 places, half of it to a thief, half and one on overflow; and
 * with an owner and thieves at once, that every G is seen exactly once. */
#include "sched/runq.h"
#include "../lib/test.h"

#include <pthread.h>

/* The library's own words, inlined here: not for TSan, which does not see the rest of it. */
#define INSIDE __attribute__((noinline, no_sanitize("thread")))

enum { THIEVES = 3, MANY = 20000, ROUNDS = 60 };

static P ps[THIEVES + 1];
static G gs[MANY];

static void fresh(P *p, uint32_t start) { /* indices run over the end of uint32_t in some tests */
    memset(p, 0, sizeof *p);
    p->head = p->tail = start;
    p->status = P_STOPPED;
}

static void fill(P *p, int n) {
    for (int i = 0; i < n; i++) CHECK(runq_push(p, &gs[i]));
}

INSIDE static void first_in_first_out(uint32_t start) {
    P *p = &ps[0];
    fresh(p, start);
    CHECK(runq_empty(p));
    CHECK(runq_pop(p) == NULL);
    fill(p, RING);
    CHECK(!runq_push(p, &gs[RING])); /* 256 and no more */
    CHECK_EQ(runq_length(p), RING);
    for (int i = 0; i < RING; i++) CHECK(runq_pop(p) == &gs[i]);
    CHECK(runq_pop(p) == NULL && runq_empty(p));
}

INSIDE static void overflow_moves_half_and_one(uint32_t start) {
    P *p = &ps[0];
    GList list = {0};
    fresh(p, start);
    fill(p, RING - 1);
    CHECK(!runq_overflow(p, &gs[RING], &list)); /* there is room */
    CHECK(list.head == NULL);
    CHECK(runq_push(p, &gs[RING - 1]));
    CHECK(runq_overflow(p, &gs[RING], &list));
    CHECK_EQ(list.count, RING / 2 + 1);
    for (int i = 0; i < RING / 2; i++) CHECK(glist_pop(&list) == &gs[i]); /* the oldest */
    CHECK(glist_pop(&list) == &gs[RING]);
    CHECK(glist_pop(&list) == NULL);
    for (int i = RING / 2; i < RING; i++) CHECK(runq_pop(p) == &gs[i]);
    CHECK(runq_empty(p));
}

INSIDE static void put_first(uint32_t start) {
    P *p = &ps[0];
    for (int n = 0; n <= RING / 2; n += RING / 8)
        for (int before = 0; before <= RING / 2; before += RING / 8) {
            GList list = {0};
            fresh(p, start);
            fill(p, n);
            for (int i = 0; i < before; i++) glist_push(&list, &gs[n + i]);
            runq_put_first(p, &list);
            CHECK_EQ(runq_length(p), (uint32_t)(n + before));
            for (int i = 0; i < before; i++) CHECK(runq_pop(p) == &gs[n + i]);
            for (int i = 0; i < n; i++) CHECK(runq_pop(p) == &gs[i]);
            CHECK(runq_empty(p));
        }
}

INSIDE static void half_is_stolen(uint32_t start) {
    for (int n = 0; n <= RING; n++) {
        P *victim = &ps[0], *thief = &ps[1];
        uint32_t moved;
        fresh(victim, start);
        fresh(thief, start * 3 + 7);
        fill(victim, n);
        G *gp = runq_steal(thief, victim, false, &moved);
        int half = n - n / 2;
        CHECK_EQ(moved, half);
        CHECK(gp == (n ? &gs[half - 1] : NULL)); /* the last of the batch runs at once */
        for (int i = 0; i < half - 1; i++) CHECK(runq_pop(thief) == &gs[i]);
        CHECK(runq_empty(thief));
        for (int i = half; i < n; i++) CHECK(runq_pop(victim) == &gs[i]);
        CHECK(runq_empty(victim));
    }
}

INSIDE static void the_slot_is_taken_last(void) {
    P *victim = &ps[0], *thief = &ps[1];
    uint32_t moved;
    fresh(victim, 0);
    fresh(thief, 0);
    CHECK(runnext_swap(victim, &gs[1]) == NULL);
    CHECK(runnext_swap(victim, &gs[2]) == &gs[1]);
    CHECK(!runq_empty(victim));
    CHECK_EQ(runq_length(victim), 1);
    CHECK(runq_steal(thief, victim, false, &moved) == NULL); /* not before the last round */
    CHECK(runq_push(victim, &gs[3]));
    CHECK(runq_steal(thief, victim, true, &moved) == &gs[3]); /* the ring comes first */
    victim->status = P_RUNNING; /* the back-off, and then it is taken all the same */
    CHECK(runq_steal(thief, victim, true, &moved) == &gs[2]);
    CHECK_EQ(moved, 1);
    CHECK(runq_empty(victim) && runq_empty(thief));
    CHECK(!runnext_take(victim, &gs[2]));
}

INSIDE static void drained(void) {
    P *p = &ps[0];
    GList list = {0};
    fresh(p, UINT32_MAX - 3);
    fill(p, 10);
    runnext_swap(p, &gs[10]);
    runq_drain(p, &list);
    CHECK_EQ(list.count, 11);
    CHECK(glist_pop(&list) == &gs[10]); /* it was next */
    for (int i = 0; i < 10; i++) CHECK(glist_pop(&list) == &gs[i]);
    CHECK(runq_empty(p));
}

/* ---- with thieves ---------------------------------------------------------------------------- */

static int stop, round_now;
static uint32_t seen[MANY], consumed;
static uint64_t stolen;

INSIDE static void consume(G *gp) {
    size_t i = (size_t)(gp - gs);
    CHECK(i < MANY);
    CHECKF(add(&seen[i], 1) == (uint32_t)get(&round_now), "G %zu is seen %u times in round %d", i,
           seen[i], round_now);
    add(&consumed, 1);
}

INSIDE static void consume_ring(P *p) {
    G *gp;
    while ((gp = load_rlx(&p->runnext)) != NULL)
        if (runnext_take(p, gp)) consume(gp);
    while ((gp = runq_pop(p)) != NULL) consume(gp);
}

INSIDE static void *thief(void *arg) {
    P *p = arg;
    uint64_t seed = (uint64_t)(p - ps);
    while (!get(&stop)) {
        uint32_t moved;
        P *victim = &ps[test_random(&seed) % (THIEVES + 1)];
        if (victim == p) continue;
        G *gp = runq_steal(p, victim, test_random(&seed) % 4 == 0, &moved);
        if (gp == NULL) continue;
        __atomic_add_fetch(&stolen, moved, __ATOMIC_RELAXED);
        consume(gp);
        if (test_random(&seed) % 2) consume_ring(p); /* else others steal it back first */
        while (runq_length(p) > 0) consume_ring(p);  /* a thief's own ring must be empty */
    }
    return NULL;
}

/* The owner's part of a round: every G once, by the slot or the ring, popping some. */
INSIDE static void own(P *p, uint64_t *seed) {
    for (int i = 0; i < MANY; i++) {
        G *gp = &gs[i], *next;
        if (test_random(seed) % 4 == 0) gp = runnext_swap(p, gp);
        GList list = {0};
        while (gp && !runq_push(p, gp)) {
            if (!runq_overflow(p, gp, &list)) continue;
            CHECK_EQ(list.count, RING / 2 + 1);
            while ((next = glist_pop(&list)) != NULL) consume(next);
            break;
        }
        if (test_random(seed) % 3 == 0 && (gp = runq_pop(p)) != NULL) consume(gp);
        if (test_random(seed) % 64 == 0) consume_ring(p);
    }
    consume_ring(p);
}

static void each_seen_once(void) {
    pthread_t threads[THIEVES];
    uint64_t seed = 4711;
    for (int i = 0; i <= THIEVES; i++) fresh(&ps[i], UINT32_MAX - 1000u * (uint32_t)i);
    set(&round_now, 1);
    for (int i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thief, &ps[i + 1]), 0);
    for (int r = 1; r <= ROUNDS || get(&stolen) == 0; r++) {
        set(&round_now, r);
        own(&ps[0], &seed);
        wait_until(get(&consumed) == (uint32_t)(MANY * r)); /* thieves have them, or had */
        for (int i = 0; i < MANY; i++) CHECK_EQ(get(&seen[i]), r);
    }
    set(&stop, 1);
    for (int i = 0; i < THIEVES; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* A G that moves from the slot to the ring while somebody looks is never overlooked: the owner
 * below has one queued at every moment. */
INSIDE static void *mover(void *arg) {
    P *p = arg;
    while (!get(&stop)) {
        G *kicked = runnext_swap(p, &gs[1]); /* from here on: 1 in the slot */
        CHECK(kicked == NULL || kicked == &gs[0]);
        if (kicked) CHECK(runq_push(p, kicked));
        CHECK(runnext_take(p, &gs[1])); /* 0 in the ring */
        CHECK(runnext_swap(p, &gs[1]) == NULL);
        CHECK(runq_pop(p) == &gs[0]);             /* 1 in the slot */
        CHECK(runnext_swap(p, &gs[0]) == &gs[1]); /* 0 in the slot */
    }
    return NULL;
}

INSIDE static void never_overlooked(void) {
    pthread_t t;
    fresh(&ps[0], 0);
    runnext_swap(&ps[0], &gs[0]);
    set(&stop, 0);
    CHECK_EQ(pthread_create(&t, NULL, mover, &ps[0]), 0);
    for (int i = 0; i < 300000; i++) CHECK(!runq_empty(&ps[0]));
    set(&stop, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void) {
    static const uint32_t starts[] = {0, 1, 255, 1000, UINT32_MAX - 100};
    /* alone, and with the instructions for thieves */
    for (uint32_t procs = 1; procs <= 2; procs++) {
        store_rlx(&sched.procs, procs);
        for (size_t i = 0; i < count_of(starts); i++) {
            first_in_first_out(starts[i]);
            overflow_moves_half_and_one(starts[i]);
            put_first(starts[i]);
            if (procs > 1) half_is_stolen(starts[i]);
        }
        drained();
    }
    the_slot_is_taken_last();
    each_seen_once();
    never_overlooked();
    return 0;
}
