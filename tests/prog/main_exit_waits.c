// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* After gort_exit in main, goroutines that wait for ever are an ordinary deadlock. */
#include "../lib/test.h"

static void waits(void *arg) { gort_chan_recv(NULL, NULL); }

static int body(int argc, char **argv) {
    gort_go(waits, NULL);
    gort_exit();
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
