// status: abort
// stderr: gort: fatal: gort_free of 0x
// stderr: which is free already
// stderr: goroutine 1 [running
// not-with: address thread valgrind
/* Misuse is loud: an object that is freed twice. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    void *a = gort_alloc(100), *b = gort_alloc(100);
    gort_free(a);
    gort_free(b);
    gort_free(a);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
