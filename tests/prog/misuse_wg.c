// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: a negative counter. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    gort_wg_done(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
