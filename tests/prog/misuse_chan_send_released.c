// status: abort
// stderr: gort: fatal: channel
// stderr: is used after its last release
// procs: 1 2
// not-with: address thread valgrind
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    gort_chan_release(c);
    gort_chan_send(c, &(int){1});
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
