// env: GORT_DEBUG=hints=1
// stderr: a deadline of 1ms lies before this program began: it is an instant of gort_now(), not a
// no-stderr: a deadline of 2ms
// procs: 1 2
/* A duration in place of a deadline is told, once. A deadline of 0 or less is none: "now". */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    CHECK_EQ(gort_chan_recv_until(c, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(c, NULL, -GORT_SEC), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(c, NULL, gort_now() - 1), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(c, NULL, GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(c, NULL, 2 * GORT_MS), -ETIMEDOUT);
    gort_chan_release(c);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
