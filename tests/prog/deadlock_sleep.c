// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
// stderr: goroutine 1 [sleep
/* A sleep without an end is no timer that is still to come. */
#include "../lib/test.h"

static void sleeps(void *arg) { gort_sleep_until(GORT_FOREVER); }

static int body(int argc, char **argv) {
    gort_go(sleeps, NULL);
    gort_sleep(GORT_FOREVER);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
