/* Goroutines that were started first have their turn beside one that starts others faster than they
 * can run. It must not send them to the end of the line each time that a ring is full: then this
 * hangs. */
#include "../lib/test.h"

enum { VICTIMS = 16, BATCH = 1000, MOST = 1000000 };
static int ran, later, over;

static void leaf(void *arg) { add(&later, 1); }
static void victim(void *arg) { add(&ran, 1); }
static void spins(void *arg) {
    while (!get(&over)) {}
}
static void sleeps(void *arg) {
    while (!get(&over)) gort_sleep(GORT_MS);
}
static void yields(void *arg) {
    while (!get(&over)) gort_yield();
}
static void floods(void *arg) {
    for (int started = 0; !get(&over);) {
        for (int i = 0; i < BATCH && started - get(&later) < MOST; i++, started++)
            CHECK_EQ(gort_go(leaf, NULL), 0);
        gort_yield();
    }
}

static int app(int argc, char **argv) {
    for (int i = 0; i < 2; i++) gort_go(spins, NULL);
    for (int i = 0; i < 3; i++) gort_go(sleeps, NULL);
    gort_go(yields, NULL);
    gort_go(floods, NULL);
    for (int i = 0; i < VICTIMS; i++) gort_go(victim, NULL);
    wait_until(get(&ran) == VICTIMS);
    set(&over, 1);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
