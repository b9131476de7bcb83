// procs: 1
// status: abort
// stderr: gort: fatal: longjmp out of a function of gort_once_do, gort_blocking
/* The function of a blocking call is left by longjmp, and the goroutine then blocks. */
#include "../lib/test.h"

#include <setjmp.h>

static jmp_buf out;

static long jumps(void *arg) { longjmp(out, 1); }
static void __attribute__((noinline)) calls(void) { gort_blocking(jumps, NULL); }
static void __attribute__((noinline)) writes_over(void) {
    volatile char room[4096];
    memset((void *)room, 0x41, sizeof room);
}

static int body(int argc, char **argv) {
    if (setjmp(out) == 0) calls();
    writes_over();
    gort_sleep(GORT_MS);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
