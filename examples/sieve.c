/*
 * The concurrent prime sieve: a chain of goroutines, each of which lets pass what its prime does
 * not divide. A new one is added at the end for every prime that comes through.
 */
#include <gort.h>
#include <stdio.h>

GORT_CHAN_TYPE(ints, int)

typedef struct { ints *in, *out; int prime; } Filter;

static void generate(void *arg) {
    ints *out = arg;
    for (int i = 2; ints_send(out, i) == 0; i++) {
    }
}

static void filter(void *arg) {
    Filter *f = arg; /* a copy on this goroutine's own stack */
    for (int n; ints_recv(f->in, &n) == 0;)
        if (n % f->prime != 0 && ints_send(f->out, n) != 0) break;
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    ints *end = ints_new(0);
    gort_go(generate, end);
    for (int i = 1; i <= 25; i++) {
        int prime;
        ints_recv(end, &prime);
        printf("%d%c", prime, i % 5 ? ' ' : '\n');
        Filter f = {.in = end, .out = ints_new(0), .prime = prime};
        gort_go_copy(filter, &f, sizeof f);
        end = f.out;
    }
    return 0; /* main ends: so do all the others, as in Go */
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
