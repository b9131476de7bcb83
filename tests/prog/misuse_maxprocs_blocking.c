// status: abort
// stderr: gort: fatal: gort_maxprocs inside a blocking call (goroutine 1)
// stdout: asked
/* Setting the number of Ps inside a blocking call is fatal, also where it is the number there is.
 * Asking is not. */
#include "../lib/test.h"

static long inside(void *arg) {
    int n = gort_maxprocs(0);
    if (n >= 1) printf("asked\n");
    fflush(stdout);
    return gort_maxprocs(n);
}

static int body(int argc, char **argv) { return (int)gort_blocking(inside, NULL); }

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
