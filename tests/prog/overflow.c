// status: segv
// stderr: gort: fatal: goroutine
// stderr: stack overflow (20
// stderr: ): a larger gort_attr.stack_size gives it more
// no-stderr: on_fault
// stderr: "deep" [running
// stderr: more of these frames
// not-with: address thread undefined valgrind
/* A stack overflow is reported by name and kills the program; no neighbour is written to. */
#include "../lib/test.h"

static __attribute__((noinline)) int recurse(volatile char *above) {
    volatile char frame[1000];
    frame[0] = above ? above[0] : 1;
    if (frame[0] == 2) return 0; /* never */
    int n = recurse(frame) + frame[0];
    frame[1] = (char)n;
    return n;
}
static void deep(void *arg) { recurse(NULL); }
static void neighbour(void *arg) { gort_chan_recv(arg, NULL); }

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    for (int i = 0; i < 10; i++) gort_go(neighbour, c);
    gort_go_with(&(gort_attr){.name = "deep"}, deep, NULL);
    for (int i = 0; i < 10; i++) gort_go(neighbour, c);
    gort_chan_recv(c, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
