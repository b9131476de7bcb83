/* The monitor sleeps while all is idle, and comes back when somebody begins to work: whoever loops
 * then without a call is preempted, whoever blocks the thread loses its P, and the others go on. */
#include "../lib/test.h"

#include <unistd.h>

static int ran;

static void other(void *arg) { add(&ran, 1); }

/* Long enough for the monitor to fall asleep; should it not have, the test only tests less. */
static void all_idle(void) { gort_sleep(30 * GORT_MS); }

static void loop_without_a_call(void) {
    for (int i = 0; i < 5; i++) {
        int before = get(&ran);
        all_idle();
        CHECK_EQ(gort_go(other, NULL), 0);
        while (get(&ran) == before) {}
    }
}

/* A plain read of a pipe that the other one writes to. */
static void write_to(void *arg) { CHECK_EQ(write(*(int *)arg, "x", 1), 1); }

static void block_without_a_word(void) {
    for (int i = 0; i < 5; i++) {
        int p[2];
        char c;
        CHECK_EQ(pipe(p), 0);
        all_idle();
        CHECK_EQ(gort_go(write_to, &p[1]), 0);
        CHECK_EQ(read(p[0], &c, 1), 1);
        close(p[0]);
        close(p[1]);
    }
}

/* Woken by the network, not by a timer. */
static void reader(void *arg) {
    char c;
    int before = get(&ran);
    CHECK_EQ(gort_read(*(int *)arg, &c, 1), 1);
    CHECK_EQ(gort_go(other, NULL), 0);
    while (get(&ran) == before) {}
    add(&ran, 1);
}

static long writes_later(void *arg) {
    usleep(30000);
    CHECK_EQ(write(*(int *)arg, "x", 1), 1);
    return 0;
}

static void woken_by_a_descriptor(void) {
    for (int i = 0; i < 5; i++) {
        int p[2], before = get(&ran);
        CHECK_EQ(pipe(p), 0);
        CHECK_EQ(gort_go(reader, &p[0]), 0);
        CHECK_EQ(gort_blocking(writes_later, &p[1]), 0);
        wait_until(get(&ran) == before + 2);
        close(p[0]);
        close(p[1]);
    }
}

static int run(int argc, char **argv) {
    loop_without_a_call();
    block_without_a_word();
    woken_by_a_descriptor();
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
