// status: abort
// stderr: gort: fatal:
// stderr: goroutine 1 [running
/* Misuse is loud: blocking while pinned. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    gort_pin();
    gort_chan_recv(c, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
