// stdout: created by ring+0x0 timer_creator.c:8 (timer_creator) with ring
/* No call starts the goroutine of a timer: a dump names the timer's function as its creator, and
 * not the function that stands before it. */
#include "../lib/test.h"

static gort_chan *rung;

static void ring(void *arg) {
    gort_dump(1);
    gort_chan_send(rung, NULL);
}

static int body(int argc, char **argv) {
    rung = gort_chan_new(0, 1);
    gort_timer *t = gort_timer_new(GORT_MS, ring, NULL);
    gort_chan_recv(rung, NULL);
    gort_timer_free(t);
    gort_chan_release(rung);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
