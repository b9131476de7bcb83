// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: an inner unpin does not end the outer pin. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_pin();
    gort_pin();
    gort_unpin();
    gort_yield();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
