// status: abort
// stderr: gort: fatal: pthread_exit
// stderr: goroutine 2 [running
// not-with: address thread
/* Misuse is loud: the thread is not the goroutine's to end, and its P would be gone with it. */
#include "../lib/test.h"

#include <pthread.h>

static void leaves(void *arg) { pthread_exit(NULL); }

static int body(int argc, char **argv) {
    gort_go(leaves, NULL);
    gort_chan_recv(gort_chan_new(0, 0), NULL); /* for ever */
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
