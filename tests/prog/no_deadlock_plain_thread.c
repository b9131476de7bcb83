// status: 0
// no-stderr: deadlock
// not-with: emulation
/* A thread the runtime did not start may wake somebody: no verdict while there is one. (qemu makes
 * /proc/self/stat up, with no threads in it.) */
#include "../lib/test.h"
#include <pthread.h>
#include <unistd.h>

static gort_chan *chan;
static void *later(void *arg) {
    usleep(50000);
    CHECK_EQ(gort_chan_send(chan, NULL), 0);
    return NULL;
}

static int body(int argc, char **argv) {
    pthread_t t;
    chan = gort_chan_new(0, 0);
    CHECK_EQ(pthread_create(&t, NULL, later, NULL), 0);
    CHECK_EQ(gort_chan_recv(chan, NULL), 0);
    pthread_join(t, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
