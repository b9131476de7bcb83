// status: abort
// stderr: Assertion
// stderr: gort: fatal: SIGABRT in goroutine 1: the program has called abort
// stderr: checks+
// stderr: crash_assert.c:14 (
// no-stderr: asleep
// not-with: valgrind
/* A failed assert, by way of abort. The goroutine that waits is not listed. */
#include "../lib/test.h"

#include <assert.h>

__attribute__((noinline)) static void checks(int n) {
    assert(n == 1);
    __asm__ volatile("");
}
static void asleep(void *arg) { gort_chan_recv(arg, NULL); }

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    gort_go_with(&(gort_attr){.name = "asleep"}, asleep, c);
    checks(argc + 1);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
