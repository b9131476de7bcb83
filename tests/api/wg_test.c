/* Wait groups. */
#include "../lib/waiting.h"

static void one_more(void *arg) { add((int *)arg, 1); }

static void leaver(void *arg) {
    add((int *)arg, 1);
    gort_exit();
}

static void starts_and_waits(void) {
    gort_wg wg = {0};
    int n = 0;
    gort_wg_wait(&wg); /* nothing to wait for */
    CHECK_EQ(gort_wg_wait_until(&wg, 0), 0);
    for (int i = 0; i < 300; i++) CHECK_EQ(gort_wg_go(&wg, i % 3 ? one_more : leaver, &n), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(n, 300);
    CHECK_EQ(gort_wg_go(&wg, NULL, NULL), -EINVAL);
    gort_wg_wait(&wg); /* the failed start does not count */
}

static void deadlines(void) {
    gort_wg wg = {0};
    gort_wg_add(&wg, 2);
    CHECK_EQ(gort_wg_wait_until(&wg, 0), -ETIMEDOUT);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    CHECK_EQ(gort_wg_wait_until(&wg, deadline), -ETIMEDOUT);
    CHECK_GE(gort_now(), deadline);
    CHECK_EQ(wg.state_ & 1, 0); /* nobody sleeps any more */
    gort_wg_done(&wg);
    CHECK_EQ(gort_wg_wait_until(&wg, gort_now() + GORT_MS), -ETIMEDOUT);
    gort_wg_add(&wg, -1);
    CHECK_EQ(gort_wg_wait_until(&wg, 0), 0);
}

/* ---- many waiters, many generations --------------------------------------------------------- */

typedef struct Scene {
    gort_wg wg, end;
    int woken, timed_out, ready;
    int n; /* written before done, read after wait: plain */
} Scene;

static void waiter(void *arg) {
    Scene *s = arg;
    gort_wg_wait(&s->wg);
    CHECK_EQ(s->n, 42);
    add(&s->woken, 1);
}

static void timed_waiter(void *arg) {
    Scene *s = arg;
    int r = gort_wg_wait_until(&s->wg, gort_now() + GORT_MS);
    if (r == 0) CHECK_EQ(s->n, 42);
    else CHECK_EQ(r, -ETIMEDOUT);
    add(r == 0 ? &s->woken : &s->timed_out, 1);
}

static void all_waiters_wake(void) {
    for (int round = 0; round < 20; round++) {
        Scene s = {0};
        gort_wg_add(&s.wg, 1);
        for (int i = 0; i < 10; i++) {
            CHECK_EQ(gort_wg_go(&s.end, waiter, &s), 0);
            CHECK_EQ(gort_wg_go(&s.end, timed_waiter, &s), 0);
        }
        if (round % 2) wait_until(waiting_for("sync.WaitGroup.Wait") >= 10);
        s.n = 42;
        gort_wg_done(&s.wg);
        gort_wg_wait(&s.end);
        CHECK_EQ(s.woken + s.timed_out, 20);
        CHECK_GE(s.woken, 10);
    }
}

/* One wait group used again and again, on a stack that is left as soon as it is done: the last
 * done may not touch it, nor wake who waits for the next one that lives there. */
static void done_late(void *arg) {
    gort_wg *wg = arg;
    if (gort_id() % 2) gort_yield();
    gort_wg_done(wg);
}

static __attribute__((noinline)) void one_life(int i) {
    gort_wg wg = {0};
    gort_wg_add(&wg, 2);
    CHECK_EQ(gort_go(done_late, &wg), 0);
    CHECK_EQ(gort_go(done_late, &wg), 0);
    int r;
    if (i % 3 == 0) gort_wg_wait(&wg);
    else do
            r = gort_wg_wait_until(&wg, gort_now() + 10 * GORT_US);
        while (r == -ETIMEDOUT);
    CHECK_EQ(wg.state_ >> 32, 0);
    memset((void *)&wg, 0x5a, sizeof wg);
}

static void short_lives(void) {
    for (int i = 0; i < 2000; i++) one_life(i);
}

/* A wait ends with its generation, though the counter is raised again at once. */
static void again(void *arg) {
    Scene *s = arg;
    gort_wg_wait(&s->wg);
    add(&s->woken, 1);
}

static void next_generation(void) {
    Scene s = {0};
    gort_wg_add(&s.wg, 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_wg_go(&s.end, again, &s), 0);
    wait_until(waiting_for("sync.WaitGroup.Wait") == 4);
    gort_wg_done(&s.wg);
    gort_wg_add(&s.wg, 1);
    gort_wg_wait(&s.end);
    CHECK_EQ(s.woken, 4);
    CHECK_EQ(gort_wg_wait_until(&s.wg, 0), -ETIMEDOUT);
    gort_wg_done(&s.wg);
}

/* Members start members. */
typedef struct Tree {
    gort_wg wg;
    int leaves;
} Tree;
static Tree tree;
static void grow(void *arg) {
    intptr_t depth = (intptr_t)arg;
    if (depth == 0) {
        add(&tree.leaves, 1);
        return;
    }
    CHECK_EQ(gort_wg_go(&tree.wg, grow, (void *)(depth - 1)), 0);
    CHECK_EQ(gort_wg_go(&tree.wg, grow, (void *)(depth - 1)), 0);
}

static int body(int argc, char **argv) {
    starts_and_waits();
    deadlines();
    all_waiters_wake();
    short_lives();
    next_generation();
    CHECK_EQ(gort_wg_go(&tree.wg, grow, (void *)8), 0);
    gort_wg_wait(&tree.wg);
    CHECK_EQ(tree.leaves, 256);
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) deadlines();
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_go(&wg, one_more, NULL), -ENOTCONN);
    CHECK_EQ(wg.state_, 0);
    return gort_main(body, argc, argv);
}
