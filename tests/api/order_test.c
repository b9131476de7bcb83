/*
 * The order in which one P runs what is ready: the LIFO slot, the ring of 256 and its overflow, the
 * global queue on every 61st round, and the slice that a pair of goroutines has to share.
 *
 * A slice that ends in between is allowed to change an order, so the tests of an order repeat and
 * want to see it a number of times; a scheduler without the rule never shows it. The bounds hold
 * always.
 */
#include "../lib/test.h"
#include <stdbool.h>

/* ---- five started, then main blocks: 5 1 2 3 4 ---------------------------------------------- */

static int sequence[8], seen;
static gort_chan *done;

static void note(void *arg) {
    int at = add(&seen, 1);
    set(&sequence[at - 1], (int)(intptr_t)arg);
    if (at == 5) gort_chan_send(done, NULL);
}

static bool in_order(void) {
    set(&seen, 0);
    for (intptr_t i = 1; i <= 5; i++) CHECK_EQ(gort_go(note, (void *)i), 0);
    CHECK_EQ(gort_chan_recv(done, NULL), 0);
    static const int expected[5] = {5, 1, 2, 3, 4};
    return memcmp(sequence, expected, sizeof expected) == 0;
}

static void lifo_slot_then_fifo(void) {
    int right = 0, rounds = 0;
    for (; rounds < 2000 && right < 50; rounds++) right += in_order();
    CHECKF(right == 50, "5 1 2 3 4 only %d times in %d; last: %d %d %d %d %d", right, rounds,
           sequence[0], sequence[1], sequence[2], sequence[3], sequence[4]);
}

/* ---- a pair that keeps waking each other starves nobody ------------------------------------- */

static gort_chan *ping, *pong;
static int enough;

static void returner(void *arg) {
    while (gort_chan_recv(ping, NULL) == 0) gort_chan_send(pong, NULL);
}

static void third(void *arg) {
    add(&enough, 1);
    if (arg == NULL) return;
    gort_yield(); /* once through the local queue, once through the global one */
    add(&enough, 1);
}

static void a_pair_shares_one_slice(void) {
    ping = gort_chan_new(0, 0);
    pong = gort_chan_new(0, 0);
    CHECK_EQ(gort_go(third, NULL), 0);
    CHECK_EQ(gort_go(third, &enough), 0);
    CHECK_EQ(gort_go(returner, NULL), 0);
    while (get(&enough) < 3) { /* without inheritance: for ever */
        CHECK_EQ(gort_chan_send(ping, NULL), 0);
        CHECK_EQ(gort_chan_recv(pong, NULL), 0);
    }
    gort_chan_close(ping);
    wait_until(gort_count() == 1);
    gort_chan_release(ping);
    gort_chan_release(pong);
}

/* ---- the 258th goes to the global queue, with half of the ring ------------------------------ */

static int counted;
static void tick(void *arg) { add(&counted, 1); }

static void overflow_moves_half(void) {
    gort_stats before, full, after;
    wait_until(gort_count() == 1);
    gort_pin(); /* nothing runs in between */
    gort_stats_read(&before);
    for (int i = 0; i < 257; i++) CHECK_EQ(gort_go(tick, NULL), 0);
    gort_stats_read(&full);
    CHECK_EQ(gort_go(tick, NULL), 0);
    gort_stats_read(&after);
    gort_unpin();
    CHECK_EQ(before.local_queues, 0);
    CHECK_EQ(full.local_queues, 257); /* the ring and the slot */
    CHECK_EQ(full.global_queue, 0);
    CHECK_EQ(full.overflows, before.overflows);
    CHECK_EQ(after.local_queues, 257 - 128);
    CHECK_EQ(after.global_queue, 128 + 1);
    CHECK_EQ(after.overflows, before.overflows + 1);
    wait_until(get(&counted) == 258);
}

/* ---- started without end: who was first still gets to run ------------------------------------ */

static int first; /* just over a ring, where each costs a millisecond or hundreds of kilobytes */
static int first_ran, stop_starting;
static void starts_two(void *arg) { /* more and more of them wait, and the newest are preferred */
    if (arg) add(&first_ran, 1);
    if (get(&stop_starting) || gort_count() > 2 * first) return;
    for (int i = 0; i < 2; i++) CHECK_EQ(gort_go(starts_two, NULL), 0);
}

static void the_first_are_not_forgotten(void) {
    static int yes;
    first = TEST_SCALE > 1 || test_valgrind() ? 300 : 20000;
    set(&first_ran, 0), set(&stop_starting, 0);
    for (int i = 0; i < first; i++) CHECK_EQ(gort_go(starts_two, &yes), 0);
    wait_until(get(&first_ran) == first);
    set(&stop_starting, 1);
    wait_until(gort_count() == 1);
}

/* ---- every 61st round ----------------------------------------------------------------------- */

enum { LOCALS = TEST_SCALE > 1 ? 80 : 200 };
static int locals;
static void local(void *arg) { add(&locals, 1); }

static void fill_the_ring(void *arg) {
    gort_pin(); /* all at once: half-way to the global queue it would stand before main */
    for (int i = 0; i < LOCALS; i++) CHECK_EQ(gort_go(local, NULL), 0);
    gort_unpin();
}

static uint64_t preemptions(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.preemptions;
}

/* Main waits in the global queue behind the local goroutines: it may be overtaken by at most 61
 * rounds and the one in the slot. Where a slice has ended it comes behind the ring instead: -1, it
 * may have. (A goroutine costs TSan long.) */
static int overtaken(void) {
    wait_until(gort_count() == 1);
    set(&locals, 0);
    uint64_t before = preemptions();
    int64_t start = gort_now();
    CHECK_EQ(gort_go(fill_the_ring, NULL), 0);
    while (get(&locals) == 0 && gort_count() > 1 && gort_count() < LOCALS) gort_yield();
    int n = get(&locals);
    return gort_now() - start < 9 * GORT_MS && preemptions() == before ? n : -1;
}

static void global_queue_every_61st_round(void) {
    int most = 0;
    for (int i = 0; i < 300 / TEST_SCALE;) {
        int n = overtaken();
        i += n >= 0;
        CHECKF(n <= 62, "overtaken by %d local goroutines", n);
        if (n > most) most = n;
    }
    CHECK_GE(most, 2); /* and the local queue comes first otherwise */
}

static int body(int argc, char **argv) {
    gort_maxprocs(1);
    done = gort_chan_new(0, 1);
    lifo_slot_then_fifo();
    a_pair_shares_one_slice();
    overflow_moves_half();
    the_first_are_not_forgotten();
    global_queue_every_61st_round();
    gort_chan_release(done);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
