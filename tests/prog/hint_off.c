// env: GORT_DEBUG=hints=0
// no-stderr: warning
// procs: 2
/* Who does not ask is not told: both are part of the contract. */
#include "../lib/test.h"

static void never(void *arg) { abort(); }
static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    CHECK_EQ(gort_chan_recv_until(c, NULL, 1), -ETIMEDOUT);
    gort_chan_release(c);
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_go(never, NULL), -ENOTCONN);
    return gort_main(body, argc, argv);
}
