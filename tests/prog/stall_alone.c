// env: GORT_DEBUG=stall=50
// procs: 1 2
// status: 0
// no-stderr: stall
/* A goroutine that cannot be preempted keeps its P from nobody until it wakes another: no report,
 * which would show the code that wakes and not the code that computed. */
#include "../lib/test.h"

static gort_wg wg;
static void computes(void *arg) {
    gort_pin();
    int64_t end = gort_now() + 300 * GORT_MS;
    while (gort_now() < end) continue;
    gort_unpin();
    gort_wg_done(&wg);
}

static int body(int argc, char **argv) {
    for (int i = 0; i < 3; i++) {
        gort_wg_add(&wg, 1);
        CHECK_EQ(gort_go(computes, NULL), 0);
        gort_wg_wait(&wg);
    }
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
