/*
 * The concurrent prime sieve: a chain of goroutines, each of which lets pass what its prime does
 * not divide. A new one is added at the end for every prime that comes through. When enough have
 * come, the last channel is closed: who sends there hears of it and closes the one before.
 */
#include <gort.h>
#include <stdio.h>

GORT_CHAN_TYPE(ints, int)

typedef struct {
    ints *in, *out;
    int prime;
} Filter;

static gort_wg chain;

static void generate(void *arg) {
    ints *out = arg;
    for (int i = 2; ints_send(out, i) == 0; i++) {}
    ints_release(out);
}

static void filter(void *arg) {
    Filter *f = arg; /* a copy on this goroutine's own stack */
    for (int n; ints_recv(f->in, &n) == 0;)
        if (n % f->prime != 0 && ints_send(f->out, n) != 0) break;
    ints_close(f->in);
    ints_release(f->in);
    ints_release(f->out);
    gort_wg_done(&chain);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    ints *end = ints_new(0);
    /* each channel belongs to its two ends */
    if (end == NULL || gort_wg_go(&chain, generate, ints_retain(end)) < 0) return 1;
    for (int i = 1; i <= 25; i++) {
        int prime;
        ints_recv(end, &prime);
        printf("%d%c", prime, i % 5 ? ' ' : '\n');
        Filter f = {.in = end, .out = ints_new(0), .prime = prime};
        ints_retain(f.out);
        gort_wg_add(&chain, 1);
        if (f.out == NULL || gort_go_copy(filter, &f, sizeof f) < 0) return 1;
        end = f.out;
    }
    ints_close(end);
    ints_release(end);
    gort_wg_wait(&chain); /* without this, main's end would be theirs, as in Go */
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
