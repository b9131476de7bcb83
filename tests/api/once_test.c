/* Once: one call, everybody waits for its end, gort_exit inside counts as done. */
#include "../lib/test.h"

static gort_once once, once_exit;
static int calls, entered, go_on, after, exits;

static void slow(void *arg) {
    CHECK(arg == &calls);
    add(&entered, 1);
    wait_until(get(&go_on));
    add(&calls, 1);
}

static void doer(void *arg) {
    gort_once_do(&once, slow, &calls);
    CHECK_EQ(get(&calls), 1);
    add(&after, 1);
}

static void leave_inside(void *arg) {
    add(&exits, 1);
    gort_exit();
}

static void exiter(void *arg) {
    gort_once_do(&once_exit, leave_inside, NULL);
    add(&after, 1);
}

static void inner(void *arg) { add((int *)arg, 1); }
static gort_once outer_once, inner_once;
static void outer(void *arg) { gort_once_do(&inner_once, inner, arg); }

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_wg_go(&wg, doer, NULL), 0);
    wait_until(get(&entered) == 1);
    for (int i = 0; i < 50; i++) gort_yield();
    CHECK_EQ(get(&after), 0);
    set(&go_on, 1);
    gort_wg_wait(&wg);
    CHECK_EQ(calls, 1);
    CHECK_EQ(entered, 1);
    CHECK_EQ(after, 20);

    after = 0;
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_wg_go(&wg, exiter, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(exits, 1);
    CHECK_EQ(after, 19); /* all but the one that left */

    int n = 0;
    gort_once_do(&outer_once, outer, &n);
    gort_once_do(&outer_once, outer, &n);
    CHECK_EQ(n, 1);
    return 0;
}

int main(int argc, char **argv) {
    gort_once plain = {0};
    int n = 0;
    for (int i = 0; i < 3; i++) gort_once_do(&plain, inner, &n);
    CHECK_EQ(n, 1);
    return gort_main(body, argc, argv);
}
