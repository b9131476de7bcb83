/* Thread-local variables that are larger than the stacks of the runtime's threads: libc takes them
 * out of the stack, and the runtime asks for that much more. */
#include "../lib/test.h"
#include <pthread.h>

static __thread char large[700 << 10];

static void touches(void *arg) {
    gort_lock_thread();
    for (size_t i = 0; i < sizeof large; i += 4096) large[i]++;
    gort_wg_done(arg);
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 50; i++) {
        gort_wg_add(&wg, 1);
        CHECK_EQ(gort_go(touches, &wg), 0);
    }
    gort_wg_wait(&wg);
    return 7;
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(body, argc, argv), 7);
    /* without a runtime a deadline has a thread of its own */
    gort_ctx *ctx = gort_ctx_with_deadline(NULL, gort_now() + GORT_MS);
    CHECK(ctx != NULL);
    gort_chan_recv(gort_ctx_done(ctx), NULL);
    CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
    gort_ctx_release(ctx);
    return 0;
}
