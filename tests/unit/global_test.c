/* The global queue: what was started last comes first, batch by batch, the oldest never waits for
 * more than 64 others, both parts take turns, and nothing is lost when more spills than there is
 * room for. */
#include "sched/globalq.h"
#include "sched/runq.h"
#include "../lib/test.h"

enum { BATCH = RING / 2 + 1, MANY = 100, ALL = BATCH * MANY };
static G gs[ALL + 16];
static P p;

static void fresh(uint32_t procs) {
    memset(&p, 0, sizeof p);
    sched.global = (GList){0};
    sched.spilled = (Spilled){0};
    store_rlx(&sched.procs, procs);
}

static void spill(int batch) {
    GList list = {0};
    for (int i = 0; i < BATCH; i++) glist_push(&list, &gs[batch * BATCH + i]);
    global_spill(&list);
}

/* A batch as the scheduler takes it: the first G, and the ring that has the rest is emptied. */
static int get_batch(uint32_t max, int *n) {
    lock(&sched.lock, RANK_SCHED);
    G *gp = global_get_locked(&p, max);
    unlock(&sched.lock);
    if (gp == NULL) return -1;
    int first = (int)(gp - gs);
    *n = 1;
    for (G *next; (next = runq_pop(&p)) != NULL; (*n)++) CHECK(next == gp + *n);
    return first;
}

static void newest_first(void) {
    int n;
    fresh(1);
    for (int b = 0; b < 20; b++) spill(b);
    CHECK_EQ(global_count(), 20 * BATCH);
    CHECK_EQ(get_batch(0, &n), 19 * BATCH);
    CHECK_EQ(n, BATCH);
    CHECK_EQ(get_batch(0, &n), 0); /* the oldest's share, for the next 31 */
    for (int b = 18; b > 10; b--) {
        CHECK_EQ(get_batch(0, &n), b * BATCH);
        CHECK_EQ(n, BATCH);
    }
}

/* Whatever is spilled meanwhile: a batch after each that is taken. */
static void oldest_in_time(void) {
    fresh(1);
    int n, b = 0, waited = 0;
    for (; b < 10; b++) spill(b);
    sched.spilled.debt = -31 * BATCH; /* just behind its turn */
    for (; get_batch(0, &n) != 0; waited++) {
        CHECK_LT(waited, 65);
        spill(b++ % (MANY - 20) + 20);
    }
    CHECK_GE(waited, 30);
}

/* More than can be done soon: every second one is the oldest, and a look for one takes a batch. */
static void overdue(void) {
    fresh(1);
    int n, b = 0, old = 0;
    for (; b < 10; b++) spill(b);
    store_rlx(&sched.coarse, 200 * GORT_MS);
    for (; b < 24; b++) {
        old += get_batch(1, &n) < 10 * BATCH;
        CHECK_EQ(n, BATCH);
        spill(b);
    }
    CHECK(old >= 6 && old <= 8);
    store_rlx(&sched.coarse, 0);
}

static void in_turns(void) {
    fresh(1);
    int n, yielded = 0;
    for (int b = 0; b < 10; b++) spill(b);
    for (int i = 0; i < 4; i++) global_put(&gs[ALL + i]);
    for (int i = 0; i < 8; i++) yielded += get_batch(1, &n) >= ALL;
    CHECK_EQ(yielded, 4);
    CHECK_EQ(global_count(), 10 * BATCH - 4);
    sched.spilled.turn |= 1;
    global_spilled_first_locked(); /* nobody else is there */
    global_put(&gs[ALL]);
    CHECK_LT(get_batch(1, &n), ALL);
    global_spilled_first_locked(); /* somebody is, and keeps the turn */
    CHECK_EQ(get_batch(1, &n), ALL);
}

static int seen[ALL];
static void nothing_lost(uint32_t procs) {
    fresh(procs);
    memset(seen, 0, sizeof seen);
    for (int b = 0; b < MANY; b++) spill(b);
    CHECK_EQ(sched.spilled.n, SPILLS);
    for (int left = ALL; left > 0;) {
        lock(&sched.lock, RANK_SCHED);
        G *gp = global_get_locked(&p, left % 3 == 0);
        unlock(&sched.lock);
        for (; gp; gp = runq_pop(&p), left--) CHECK_EQ(seen[gp - gs]++, 0);
        CHECK_EQ(global_count(), left);
    }
    CHECK(sched.spilled.n == 0 && sched.spilled.count == 0);
}

static void flattened(void) {
    fresh(2);
    for (int b = 0; b < 5; b++) spill(b);
    lock(&sched.lock, RANK_SCHED);
    global_flatten_locked();
    unlock(&sched.lock);
    CHECK(sched.spilled.count == 0 && sched.spilled.n == 0);
    CHECK_EQ(global_count(), 5 * BATCH);
    for (int i = 0; i < 5 * BATCH; i++) CHECK(glist_pop(&sched.global) == &gs[i]);
}

int main(void) {
    newest_first();
    oldest_in_time();
    overdue();
    in_turns();
    nothing_lost(1);
    nothing_lost(7);
    flattened();
    return 0;
}
