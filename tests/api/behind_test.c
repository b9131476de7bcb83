/*
 * Functions of gort_blocking that outlive their runtime, beside the next one.
 */
#include "../test.h"
#include <unistd.h>

enum { CROWD = 8, ROUNDS = 300 / TEST_SCALE };

static int inside, leave;

static void reset(void) {
    set(&inside, 0);
    set(&leave, 0);
}

/* ---- it ends just when the next runtime begins --------------------------------------------------- */

static long waits(void *arg) {
    add(&inside, 1);
    while (!get(&leave)) usleep(20);
    for (volatile int i = 0; i < (int)(intptr_t)arg; i++) continue;
    return 0;
}
static void blocks_and_waits(void *arg) { gort_blocking(waits, arg); }

static int leaves_crowd(int argc, char **argv) {
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(blocks_and_waits, (void *)(intptr_t)(i * 3000)), 0);
    wait_until(get(&inside) == CROWD);
    return 0;
}
static int yields(int argc, char **argv) {
    gort_yield();
    return 0;
}
static void test_ends_at_start(void) {
    for (int i = 0; i < ROUNDS; i++) {
        reset();
        CHECK_EQ(gort_main(leaves_crowd, 0, NULL), 0);
        set(&leave, 1);
        for (int k = 0; k < 4; k++) CHECK_EQ(gort_main(yields, 0, NULL), 0);
    }
}

int main(int argc, char **argv) {
    if (test_simulated()) SKIP("what is left behind is not simulated");
    test_ends_at_start();
    return 0;
}
