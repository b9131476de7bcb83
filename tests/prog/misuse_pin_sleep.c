// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: sleeping while pinned. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_pin();
    gort_sleep(GORT_MS);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
