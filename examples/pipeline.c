/*
 * A pipeline with cancellation: numbers -> squares -> running sum. The consumer has enough after a
 * while and cancels the context; every stage sees it, wherever it waits, and ends.
 */
#include <gort.h>
#include <stdio.h>

GORT_CHAN_TYPE(longs, long)

static gort_ctx *ctx;
static longs *numbers, *squares;

/* Sends unless the context is cancelled first; false: it was. */
static int send_or_cancel(longs *to, long v) {
    int chosen =
        gort_select_of(gort_on_send(longs_chan(to), &v), gort_on_recv(gort_ctx_done(ctx), NULL));
    return chosen == 0;
}

static void count_up(void *arg) {
    (void)arg;
    for (long i = 1; send_or_cancel(numbers, i); i++) {}
    printf("the first stage was cancelled (%s)\n",
           gort_ctx_err(ctx) == -ECANCELED ? "ECANCELED" : "?");
    longs_close(numbers);
}

static void square(void *arg) {
    (void)arg;
    for (long n; longs_recv(numbers, &n) == 0;)
        if (!send_or_cancel(squares, n * n)) break;
    longs_close(squares);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_wg stages = {0};
    long sum = 0, n;
    ctx = gort_ctx_new(NULL);
    numbers = longs_new(0);
    squares = longs_new(0);
    gort_wg_go(&stages, count_up, NULL);
    gort_wg_go(&stages, square, NULL);
    while (sum < 10000 && longs_recv(squares, &n) == 0) {
        sum += n;
        if (n % 100 == 0) printf("%ld brings the sum to %ld\n", n, sum);
    }
    printf("enough: %ld\n", sum);
    gort_ctx_cancel(ctx);
    gort_wg_wait(&stages);
    printf("all stages have ended\n");
    longs_release(numbers);
    longs_release(squares);
    gort_ctx_release(ctx);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
