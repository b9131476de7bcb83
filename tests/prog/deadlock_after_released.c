// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* A timer whose channel was released wakes nobody, and does not keep the report away. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_timer *owner;
    gort_chan_release(gort_after(3600 * GORT_SEC));
    gort_chan_release(gort_tick(3600 * GORT_SEC, NULL));
    gort_chan_release(gort_tick(3600 * GORT_SEC, &owner));
    return gort_chan_recv(NULL, NULL);
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
