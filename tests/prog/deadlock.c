// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
// stderr: goroutine 1 [chan receive
// stderr: "waiter" [sync.Mutex.Lock
/* Everybody waits and nobody can wake anybody: said so, with every wait reason. */
#include "../lib/test.h"

static gort_mutex mutex;
static void waiter(void *arg) { gort_mutex_lock(&mutex); }

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    gort_mutex_lock(&mutex);
    gort_go_with(&(gort_attr){.name = "waiter"}, waiter, NULL);
    gort_chan_recv(c, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
