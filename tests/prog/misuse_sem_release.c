// status: abort
// stderr: gort: fatal: release of a negative number
// stderr: goroutine 1 [running
/* Misuse is loud: permits cannot be taken by releasing. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_sem s = {0};
    gort_sem_release(&s, -1);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
