// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: waiting for a mutex while pinned. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_mutex m = {0};
    gort_mutex_lock(&m);
    gort_pin();
    gort_mutex_lock(&m);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
