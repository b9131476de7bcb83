/*
 * A pipeline with cancellation: numbers -> squares, by three workers -> sum. Its stages are the
 * members of a group. When the consumer has enough it cancels the context, which all of them have
 * in use: whatever they wait for ends with -ECANCELED. A stage that fails would end the others so.
 */
#include <gort.h>
#include <stdio.h>
#include <string.h>

GORT_CHAN_TYPE(longs, long)

enum { WORKERS = 3, ENOUGH = 10000 };
static longs *numbers, *squares;
static int working = WORKERS; /* atomic */

static int count_up(gort_ctx *ctx, void *arg) {
    int err = 0;
    (void)ctx, (void)arg; /* it is in use already */
    for (long i = 1; err == 0; i++) err = longs_send(numbers, i);
    printf("the first stage has ended: %s\n", strerror(-err));
    longs_close(numbers);
    return err;
}

/* Each value goes to one worker; the last worker closes the next channel. */
static int square(gort_ctx *ctx, void *arg) {
    int err;
    (void)ctx, (void)arg;
    for (long n; (err = longs_recv(numbers, &n)) == 0;)
        if ((err = longs_send(squares, n * n)) != 0) break;
    if (__atomic_sub_fetch(&working, 1, __ATOMIC_ACQ_REL) == 0) longs_close(squares);
    return err == -EPIPE ? 0 : err; /* closed: the usual end */
}

static long sum_up(void) {
    long sum = 0, n;
    while (sum < ENOUGH && longs_recv(squares, &n) == 0) sum += n;
    return sum;
}

static int start(gort_group *stages) {
    int err = gort_group_go(stages, count_up, NULL);
    for (int i = 0; i < WORKERS && err == 0; i++) err = gort_group_go(stages, square, NULL);
    return err;
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_group *stages = ctx ? gort_group_new(ctx, 0) : NULL;
    numbers = longs_new(0);
    squares = longs_new(0);
    int err = stages && numbers && squares ? start(stages) : -ENOMEM;
    if (err < 0) return fprintf(stderr, "pipeline: %s\n", strerror(-err)), 1;
    long sum = sum_up();
    gort_ctx_cancel(ctx); /* enough, or nothing more comes */
    err = gort_group_wait(stages);
    printf("all stages have ended, the sum is %s\n", sum >= ENOUGH ? "large enough" : "too small");
    longs_release(numbers);
    longs_release(squares);
    gort_ctx_release(ctx);
    return err != -ECANCELED; /* another error was a stage's own */
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
