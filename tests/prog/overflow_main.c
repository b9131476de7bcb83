// status: segv
// stderr: gort: fatal: goroutine 1: stack overflow (10
// stderr: ): the main goroutine's stack has this size always; gort_attr.stack_size gives another
// no-stderr: on_fault
// not-with: address thread undefined valgrind
/* The main goroutine's stack ends somewhere too. */
#include "../lib/test.h"

static __attribute__((noinline)) int recurse(volatile char *above) {
    volatile char frame[5000];
    frame[0] = above ? above[0] : 1;
    if (frame[0] == 2) return 0; /* never */
    int n = recurse(frame) + frame[0];
    frame[1] = (char)n;
    return n;
}

static int body(int argc, char **argv) { return recurse(NULL); }

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
