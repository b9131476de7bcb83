/* A signal that is watched when the runtime ends is given back afterwards: gort_signal_stop works
 * without one. */
#include "../lib/test.h"

#include <signal.h>

static gort_chan *ch;
static int hits;
static void own(int signo) { hits++; }

static int body(int argc, char **argv) {
    ch = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    int got;
    CHECK_EQ(gort_chan_recv(ch, &got), 0);
    CHECK_EQ(got, SIGUSR1);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i <= 3; i++) {
        signal(SIGUSR1, own);
        CHECK_EQ(gort_main(body, argc, argv), 0);
        CHECK_EQ(gort_signal_stop(NULL), -EINVAL);
        CHECK_EQ(gort_signal_stop(ch), 0);
        gort_chan_release(ch);
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(hits, i);
    }
    return 0;
}
