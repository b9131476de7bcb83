// status: abort
// stderr: gort: fatal: runlock of unlocked rwmutex
// stderr: goroutine 1 [running
/* Misuse is loud: a reader leaves that is not in. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_rwmutex rw = {0};
    gort_rwmutex_rlock(&rw);
    gort_rwmutex_runlock(&rw);
    gort_rwmutex_runlock(&rw);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
