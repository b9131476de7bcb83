// A frame larger than a page, of code without -fstack-clash-protection, steps into the guard and
// not over it.
// status: segv
// stderr: stack overflow (
// no-stderr: neighbour was written to
// not-with: address thread undefined valgrind
#include "../lib/test.h"

#include <unistd.h>

static volatile char sink;
static long nap(void *arg) { return usleep(1000); }

#if defined(__clang__)
#define BARE __attribute__((noinline))
#else
#define BARE __attribute__((noinline, optimize("no-stack-clash-protection")))
#endif
/* Only its low end is touched. */
BARE static void steps_over(void) {
    volatile char frame[300 << 10];
    frame[0] = 1;
    sink = frame[0]; /* in the guard, 90 KB below its upper end */
    frame[1] = 2;
}
static void jumps(void *arg) { steps_over(); }
static void neighbour(void *arg) { gort_chan_recv(arg, NULL); }

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    for (int i = 0; i < 3; i++) gort_go(neighbour, c);
    gort_yield();
    gort_go(jumps, NULL);
    for (int i = 0; i < 10; i++) gort_go(neighbour, c);
    for (int i = 0; i < 50; i++) gort_sleep(GORT_MS);
    return sink ? 0 : sink + (int)nap(NULL);
}

int main(int argc, char **argv) {
#ifdef __clang__
    SKIP("this compiler cannot leave the probes out of one function");
#endif
    return gort_main(body, argc, argv);
}
