// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: unlocking an unlocked mutex. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_mutex m = {0};
    gort_mutex_unlock(&m);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
