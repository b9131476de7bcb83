// status: 2
// stderr: gort: fatal: no goroutines (main called gort_exit) - deadlock!
// stdout: the other one ran
/* gort_exit in main ends goroutine 1 only; the program goes on until the last one has ended. */
#include "../lib/test.h"

static void other(void *arg) {
    gort_sleep(10 * GORT_MS);
    printf("the other one ran\n");
    fflush(stdout);
}

static int body(int argc, char **argv) {
    gort_go(other, NULL);
    gort_exit();
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
