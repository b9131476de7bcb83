// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: a blocking call while pinned. */
#include "../lib/test.h"

static long nap(void *arg) { return 0; }

static int body(int argc, char **argv) {
    gort_pin();
    gort_blocking(nap, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
