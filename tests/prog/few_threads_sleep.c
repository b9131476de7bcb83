// env: GORT_DEBUG=sysfault=clone:EAGAIN:5+
// procs: 1 2
// stdout: all have slept
/* No thread can be made any more, and all that there are belong to goroutines that sleep. They wake
 * up, in time, and the others get their turn. */
#include "../lib/test.h"

static void sleeper(void *arg) {
    gort_lock_thread();
    gort_sleep(2 * GORT_MS);
    gort_unlock_thread();
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 12; i++) CHECK_EQ(gort_wg_go(&wg, sleeper, NULL), 0);
    gort_wg_wait(&wg);
    puts("all have slept");
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
