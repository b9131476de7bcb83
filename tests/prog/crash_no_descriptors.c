// status: segv
// stderr: SIGSEGV in goroutine 1: nothing is mapped at address 0x10
// stderr: body+0x
// stderr: crash_no_descriptors.c:
// not-with: address thread undefined valgrind
/* A program that has used up its descriptors, a usual reason to crash, is told with names and
 * lines: its symbols are read although no more files may be opened. */
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/resource.h>

static volatile uintptr_t nowhere = 16;

static int body(int argc, char **argv) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (open("/dev/null", O_RDONLY) >= 0) {}
    *(volatile int *)nowhere = 1;
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
