/* A name cannot be looked up for want of descriptors: gort_dial says so, not that there is none. */
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/resource.h>

static int run(int argc, char **argv) {
    while (open("/dev/null", O_RDONLY) >= 0) {}
    errno = 12345;
    CHECK_EQ(gort_dial("localhost:1", GORT_FOREVER), -EMFILE);
    CHECK_EQ(gort_dial("localhost:1", gort_now() + 20 * GORT_SEC), -EMFILE);
    CHECK_EQ(errno, 12345);
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit few = {40, 40};
    setrlimit(RLIMIT_NOFILE, &few);
    return gort_main(run, argc, argv);
}
