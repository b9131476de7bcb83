// status: abort
// stderr: gort: fatal: gort_exit inside a blocking call (goroutine
// procs: 1 2
// not-with: valgrind
/* The program calls exit while a fatal error is reported, which takes a while with many goroutines.
 * It still ends by the abort. */
#include "../lib/test.h"

static gort_chan *never;
static int inside;

static void waits(void *arg) { gort_chan_recv(never, NULL); }
static long ends(void *arg) {
    set(&inside, 1);
    gort_exit();
    return 0;
}
static void fails(void *arg) { gort_blocking(ends, NULL); }

static int run(int argc, char **argv) {
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 2000; i++) CHECK_EQ(gort_go(waits, NULL), 0);
    gort_yield();
    CHECK_EQ(gort_go(fails, NULL), 0);
    wait_until(get(&inside));
    exit(0);
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
