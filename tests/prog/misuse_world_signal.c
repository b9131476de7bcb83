// status: abort
// stderr: gort: fatal: blocking with the world stopped (goroutine 1)
// stderr: goroutine 1 [running
/* A call that may wait for another of its kind is misuse in a stopped world, also where it need
 * not. */
#include "../lib/test.h"

#include <signal.h>

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    gort_stop_world();
    gort_signal_notify(c, SIGUSR1);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
