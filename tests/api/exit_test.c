/* gort_exit ends the calling goroutine from any depth; whoever counts it finds it ended. */
#include "../lib/test.h"

static int reached, ended;

static __attribute__((noinline)) void deep(int n) {
    volatile char room[64];
    room[0] = (char)n;
    if (n == 0) gort_exit();
    if (n > 0) deep(n - 1);
    add(&reached, room[0] + 1);
}

static void leaves(void *arg) {
    add(&ended, 1);
    deep(20);
    add(&reached, 1);
}

static int leaves_group(gort_ctx *ctx, void *arg) {
    leaves(arg);
    return -EIO;
}

static void once_and_out(void *arg) {
    gort_once_do(arg, leaves, NULL);
    add(&reached, 1);
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    gort_once once = {0};
    for (int i = 0; i < 1000; i++) CHECK_EQ(gort_go(leaves, NULL), 0);
    wait_until(gort_count() == 1);
    CHECK_EQ(get(&ended), 1000);

    for (int i = 0; i < 100; i++) CHECK_EQ(gort_wg_go(&wg, leaves, NULL), 0);
    gort_wg_wait(&wg); /* "has ended" */
    CHECK_EQ(get(&ended), 1100);

    gort_group *group = gort_group_new(NULL, 3);
    for (int i = 0; i < 50; i++) CHECK_EQ(gort_group_go(group, leaves_group, NULL), 0);
    CHECK_EQ(gort_group_wait(group), 0); /* "with 0" */
    CHECK_EQ(get(&ended), 1150);

    CHECK_EQ(gort_go(once_and_out, &once), 0);
    wait_until(gort_count() == 1);
    int before = get(&ended);
    gort_once_do(&once, leaves, NULL); /* done already: would end main otherwise */
    CHECK_EQ(get(&ended), before);
    CHECK_EQ(get(&reached), 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
