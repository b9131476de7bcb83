// procs: none
// env: GORT_MAXPROCS=abc
// stderr: GORT_MAXPROCS
// stdout: procs as by default
/* A value that is no number is ignored, with a line on stderr. */
#include "../lib/test.h"

static int body(int argc, char **argv) { return gort_maxprocs(0); }

int main(int argc, char **argv) {
    int n = gort_main(body, argc, argv);
    unsetenv("GORT_MAXPROCS");
    if (n == gort_main(body, argc, argv)) printf("procs as by default\n");
    return 0;
}
