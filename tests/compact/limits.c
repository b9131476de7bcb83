/*
 * Compact stacks under a limit on address space: gort_go refuses what could not run, with -ENOMEM,
 * and what it accepts runs; three times, so that what was promised is seen to come back. The
 * argument: stack_mode that is expected.
 */
#include "../lib/test.h"

#include <sys/resource.h>

#define MOST 60000

static gort_chan *c;
static int ran;
static void waits(void *arg) {
    add(&ran, 1);
    gort_chan_recv(c, NULL);
    add(&ran, -1);
}

static int start(void) {
    int accepted = 0, r = 0;
    while (accepted < MOST && (r = gort_go(waits, NULL)) == 0) accepted++;
    if (accepted < MOST) CHECK_EQ(r, -ENOMEM);
    return accepted;
}

static int app(int argc, char **argv) {
    gort_stats s;
    gort_stats_read(&s);
    CHECK_EQ(s.stack_mode, atoi(argv[1]));
    for (int round = 0; round < 3; round++) {
        CHECK((c = gort_chan_new(0, 0)) != NULL);
        int n = start();
        wait_until(get(&ran) == n);
        n += start(); /* what was still in somebody's cache */
        CHECK_LT(n, MOST);
        CHECK_GT(n, 1000);
        wait_until(get(&ran) == n);
        gort_chan_close(c);
        wait_until(get(&ran) == 0);
        gort_chan_release(c);
    }
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit lim = {3UL << 30, 3UL << 30};
    CHECK_EQ(setrlimit(RLIMIT_AS, &lim), 0);
    return gort_main(app, argc, argv);
}
