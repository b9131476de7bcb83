// status: abort
// stderr: gort: fatal: gort_free of 0x
// stderr: where no object begins
// stderr: goroutine 1 [running
// not-with: address thread valgrind
/* Misuse is loud: an address in the middle of an object. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    char *a = gort_alloc(100);
    gort_free(a + 16);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
