// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* The library's own thread for deadlines without a runtime is no reason to hope: its only one was
 * taken back. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_chan_recv(gort_chan_new(0, 0), NULL);
    return 0;
}

int main(int argc, char **argv) {
    gort_ctx *ctx = gort_ctx_with_deadline(NULL, gort_now() + 3600 * GORT_SEC);
    gort_ctx_release(ctx);
    return gort_main(body, argc, argv);
}
