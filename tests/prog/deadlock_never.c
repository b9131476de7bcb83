// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* A timer that never comes is no reason to hope: of a program, of a channel, of a context. */
#include "../lib/test.h"

static void rings(void *arg) {}

static int body(int argc, char **argv) {
    gort_timer_new(GORT_FOREVER, rings, NULL);
    gort_chan *after = gort_after(GORT_FOREVER);
    gort_ctx *ctx = gort_ctx_with_deadline(NULL, GORT_FOREVER - 1);
    gort_select_of(gort_on_recv(after, NULL), gort_on_recv(gort_ctx_done(ctx), NULL));
    return 0;
}

int main(int argc, char **argv) {
    gort_ctx_with_deadline(NULL, GORT_FOREVER - 1); /* on the clock without a runtime */
    return gort_main(body, argc, argv);
}
