// status: abort
// stderr: gort: fatal: longjmp out of a function of gort_once_do
// stderr: (goroutine 1)
/* The main function leaves a once by longjmp and returns: it is named, as any other goroutine. */
#include "../lib/test.h"

#include <setjmp.h>

static jmp_buf out;
static gort_once once;

static void jumps(void *arg) { longjmp(out, 1); }

static int body(int argc, char **argv) {
    if (setjmp(out) == 0) gort_once_do(&once, jumps, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
