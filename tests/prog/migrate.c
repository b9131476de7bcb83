// env: GORT_DEBUG=migrate=1
// procs: 1 2 16
// status: 0
/* GORT_DEBUG=migrate=1: a goroutine changes threads whenever it is switched away from. */
#define _GNU_SOURCE
#include "../lib/test.h"
#include <unistd.h>

static gort_chan *a, *b;

static void echo(void *arg) {
    int v;
    while (gort_chan_recv(a, &v) == 0) gort_chan_send(b, &v);
    gort_chan_close(b);
}

static int body(int argc, char **argv) {
    int moves = 0, v;
    a = gort_chan_new(sizeof(int), 0);
    b = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(gort_go(echo, NULL), 0);
    do { /* a thread to move to may have to be made first */
        int before = gettid(), i = moves;
        errno = 7;
        CHECK_EQ(gort_chan_send(a, &i), 0);
        CHECK_EQ(gort_chan_recv(b, &v), 0);
        CHECK_EQ(v, i);
        CHECK_EQ(errno, 7);
        moves += gettid() != before;
    } while (moves < 50);
    gort_chan_close(a);
    CHECK_EQ(gort_chan_recv(b, &v), -EPIPE);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
