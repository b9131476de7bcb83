/* A deadline that was set before the runtime began is still to come: no deadlock, and it ends the
 * wait. */
#include "../lib/test.h"

static gort_ctx *ctx;

static int body(int argc, char **argv) {
    gort_chan_recv(gort_ctx_done(ctx), NULL);
    CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
    return 0;
}

int main(int argc, char **argv) {
    ctx = gort_ctx_with_deadline(NULL, gort_now() + 300 * GORT_MS);
    return gort_main(body, argc, argv);
}
