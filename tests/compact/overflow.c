/* Recursion without an end: the limit, then the report. GORT_DEBUG=maxstack= is set by the
 * runner. */
#include "../lib/test.h"

static volatile long stop_at = -1;

static __attribute__((noinline)) long endless(long depth) {
    volatile char frame[100];
    frame[0] = 1;
    if (depth == stop_at) return 0;
    return endless(depth + 1) + frame[0];
}

static void runs(void *arg) { printf("%ld\n", endless(0)); }

static int body(int argc, char **argv) {
    gort_go(runs, NULL);
    while (stop_at < 0) gort_sleep(GORT_SEC);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
