// env: GORT_DEBUG=maxthreads=3
// procs: 2
// status: abort
// stderr: gort: fatal: no thread runs goroutines
/* All threads that there may be are locked to goroutines that wait for one that has none to run
 * on. */
#include "../lib/test.h"

enum { THREADS = 3 };
static gort_chan *c;
static int waiting;

static void locked(void *arg) {
    gort_lock_thread();
    add(&waiting, 1);
    gort_chan_recv(c, NULL);
}
static void sender(void *arg) { gort_chan_close(c); }

static int body(int argc, char **argv) {
    c = gort_chan_new(0, 0);
    gort_lock_thread();
    for (int i = 1; i < THREADS; i++) gort_go(locked, NULL);
    wait_until(get(&waiting) == THREADS - 1);
    gort_go(sender, NULL);
    gort_chan_recv(c, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
