// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: closing a NULL channel. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_chan_close(NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
