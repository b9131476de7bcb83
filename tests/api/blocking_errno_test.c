/* errno after gort_blocking is what the function left there, whatever thread the goroutine comes
 * back on; and nobody else's changes. */
#include "../lib/test.h"
#include <unistd.h>

enum { GOROUTINES = 50, ROUNDS = 40 };
static gort_wg wg;

static long fails(void *arg) {
    usleep(100);
    errno = (int)(intptr_t)arg;
    return -1;
}

static void caller(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(gort_blocking(fails, arg), -1);
        CHECK_EQ(errno, (int)(intptr_t)arg);
        gort_yield();
        CHECK_EQ(errno, (int)(intptr_t)arg);
    }
    gort_wg_done(&wg);
}

/* Computes: whoever comes back finds no P, waits in a queue, and is taken by another thread. */
static void bystander(void *arg) {
    errno = 1;
    for (int i = 0; i < 100 * ROUNDS; i++) {
        for (volatile int k = 0; k < 1000; k++) {}
        CHECK_EQ(errno, 1);
        gort_yield();
        CHECK_EQ(errno, 1);
    }
    gort_wg_done(&wg);
}

static int run(int argc, char **argv) {
    gort_wg_add(&wg, GOROUTINES + test_procs());
    for (intptr_t i = 0; i < GOROUTINES; i++) CHECK_EQ(gort_go(caller, (void *)(i + 1000)), 0);
    for (int i = 0; i < test_procs(); i++) CHECK_EQ(gort_go(bystander, NULL), 0);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
