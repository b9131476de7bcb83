// status: segv
// no-stderr: stack overflow
// not-with: address thread undefined valgrind
/* A wild pointer is the program's own SIGSEGV, not reported as an overflow. */
#include "../lib/test.h"

static volatile uintptr_t nowhere = 8;
static void wild(void *arg) { *(volatile int *)nowhere = 1; }

static int body(int argc, char **argv) {
    gort_go(wild, NULL);
    gort_chan_recv(NULL, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
