// status: segv
// stderr: gort: fatal: SIGSEGV in goroutine 2 "wild": nothing is mapped at address 0x8 (a null
// stderr: goroutine 2 "wild" [running
// stderr: wild+
// stderr: segv.c:16 (
// stderr: created by body+
// no-stderr: stack overflow
// no-stderr: goroutine 1 [
// not-with: address thread undefined valgrind
/* A wild pointer is told with the goroutine's name, where it stands and who has started it; the
 * others are not listed. It is no overflow. */
#include "../lib/test.h"

static volatile uintptr_t nowhere = 8;

static void wild(void *arg) { *(volatile int *)nowhere = 1; }

static int body(int argc, char **argv) {
    gort_go_with(&(gort_attr){.name = "wild"}, wild, NULL);
    gort_chan_recv(NULL, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
