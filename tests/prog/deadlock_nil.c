// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
// stderr: goroutine 1 [chan send (nil chan)
/* A NULL channel is never ready, also for the only goroutine there is. */
#include "../lib/test.h"

static int body(int argc, char **argv) { return gort_chan_send(NULL, NULL); }

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
