/* gort_yield: others run before the caller does again, which waits at the tail of the global
 * queue. */
#include "../lib/test.h"
#include <pthread.h>

enum { OTHERS = 3 };
static int stop, turns[OTHERS], ran;
static uint64_t queued;

static void taking_turns(void *arg) {
    while (!get(&stop)) {
        add((int *)arg, 1);
        gort_yield();
    }
}

static void once(void *arg) { add(&ran, 1); }

static void look(void *arg) {
    gort_stats s;
    gort_stats_read(&s);
    if (s.global_queue > get(&queued)) set(&queued, s.global_queue);
}

static void lets_a_new_one_run(void) {
    for (int i = 0; i < 200; i++) {
        set(&ran, 0);
        CHECK_EQ(gort_go(once, NULL), 0);
        int yields = 0;
        while (!get(&ran)) {
            gort_yield();
            /* the 61st round and the end of a slice may bring the caller back first, not again and
             * again */
            CHECK_LE(++yields, 50);
        }
    }
}

/* At the tail, not at the head: all of those that yield as well come in between, not only one. */
static void goes_behind_the_others(void) {
    int progressed[OTHERS] = {0};
    for (int k = 0; k < OTHERS; k++) CHECK_EQ(gort_go(taking_turns, &turns[k]), 0);
    for (int k = 0; k < OTHERS; k++) wait_until(get(&turns[k]) > 0);
    for (int i = 0; i < 1000; i++) {
        int before[OTHERS];
        for (int k = 0; k < OTHERS; k++) before[k] = get(&turns[k]);
        gort_yield();
        for (int k = 0; k < OTHERS; k++) progressed[k] += get(&turns[k]) > before[k];
    }
    set(&stop, 1);
    for (int k = 0; k < OTHERS; k++) CHECK_GE(progressed[k], 250);
    wait_until(gort_count() == 1);
}

static void waits_in_the_global_queue(void) {
    for (int i = 0; i < 1000 && get(&queued) == 0; i++) {
        CHECK_EQ(gort_go(look, NULL), 0);
        gort_yield();
    }
    CHECK_GE(get(&queued), 1);
}

static void releases(void *arg) { set(&stop, 1); }

static void waits_for_it(void *arg) {
    while (!get(&stop)) gort_yield();
}

/* More are started than a local queue holds, and the one that all the others wait for is among
 * those that did not fit: it has its turn although there is always somebody who has yielded. */
static void nobody_is_passed_over(void) {
    set(&stop, 0);
    for (int i = 0; i < 700; i++) CHECK_EQ(gort_go(i == 10 ? releases : waits_for_it, NULL), 0);
    wait_until(gort_count() == 1);
}

static void nothing(void *arg) {}

static void *plain(void *arg) {
    gort_yield(); /* a plain thread: it lets other threads run, and comes back */
    return arg;
}

static int body(int argc, char **argv) {
    gort_yield(); /* alone: comes back */
    gort_sleep(0);
    gort_sleep(-1);
    for (int i = 0; i < 10000 / TEST_SCALE; i++) {
        CHECK_EQ(gort_go(nothing, NULL), 0);
        gort_yield();
    }
    gort_maxprocs(1);
    wait_until(gort_count() == 1);
    lets_a_new_one_run();
    goes_behind_the_others();
    waits_in_the_global_queue();
    nobody_is_passed_over();
    return 0;
}

int main(int argc, char **argv) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return gort_main(body, argc, argv);
}
