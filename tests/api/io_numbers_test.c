#define _GNU_SOURCE 1
/* The runtime's own descriptors do not stand in the way: a program finds the lowest numbers as free
 * as it left them, also the standard ones; and where the limit leaves no others the runtime takes
 * what there is. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <sys/resource.h>

static int lowest; /* free before the runtime */

static int free_number(void) {
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    close(fd);
    return fd;
}

static void reads(void *arg) {
    char c;
    CHECK_EQ(gort_read(*(int *)arg, &c, 1), 1);
}
/* The poller works. */
static void passes_a_byte(void) {
    int p[2];
    CHECK_EQ(pipe(p), 0);
    gort_go_copy(reads, &p[0], sizeof p[0]);
    wait_parked(1);
    CHECK_EQ(gort_write(p[1], "x", 1), 1);
    wait_until(gort_count() == 1);
    gort_close(p[0]), gort_close(p[1]);
}

static int as_it_was(int argc, char **argv) {
    CHECK_EQ(free_number(), lowest);
    passes_a_byte();
    CHECK_EQ(free_number(), lowest);
    return 0;
}

/* Late: what a daemon does that was started with nothing. */
static int makes_standard_ones(int argc, char **argv) {
    CHECK_EQ(free_number(), 0);
    int null = open("/dev/null", O_RDWR);
    CHECK_EQ(dup2(null, 1), 1);
    passes_a_byte();
    return 0;
}

static int with_few(int argc, char **argv) {
    passes_a_byte();
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit r;
    lowest = free_number();
    CHECK_EQ(gort_main(as_it_was, argc, argv), 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    rlim_t all = r.rlim_cur;
    r.rlim_cur = 64;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    CHECK_EQ(gort_main(with_few, argc, argv), 0);
    r.rlim_cur = all;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    close(0), close(1); /* 2 tells what fails */
    CHECK_EQ(gort_main(makes_standard_ones, argc, argv), 0);
    return 0;
}
