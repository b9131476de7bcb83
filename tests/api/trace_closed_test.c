/* The program closes the files of a trace behind its back and has others under their numbers:
 * nothing of the trace goes there, they stay open, and gort_trace_stop says so. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 1200 };
static int mine, taken[NUMBERS], ntaken;
static struct stat before[NUMBERS];

/* Every file that has come since is replaced. */
static void take_numbers(void) {
    struct stat st;
    for (int fd = 3; fd < NUMBERS; fd++) {
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fd == mine) continue;
        if (st.st_dev == before[fd].st_dev && st.st_ino == before[fd].st_ino) continue;
        CHECK_EQ(dup2(mine, fd), fd);
        taken[ntaken++] = fd;
    }
}

static void all_are_mine(void) {
    struct stat st, own;
    CHECK_EQ(fstat(mine, &own), 0);
    CHECK_EQ(own.st_size, 4);
    for (int i = 0; i < ntaken; i++) {
        CHECK_EQ(fstat(taken[i], &st), 0);
        CHECK_EQ(st.st_ino, own.st_ino);
    }
}

static int body(int argc, char **argv) {
    char path[] = "/tmp/gort-test-XXXXXX", file[] = "/tmp/gort-test-XXXXXX";
    int fd = mkstemp(path);
    mine = mkstemp(file);
    CHECK(fd >= 0 && mine >= 0 && write(mine, "mine", 4) == 4);
    close(fd);
    for (fd = 3; fd < NUMBERS; fd++) fstat(fd, &before[fd]);
    CHECK_EQ(gort_trace_start(path), 0);
    take_numbers();
    CHECK_GE(ntaken, 2); /* the trace's file, and where its events are meanwhile */
    for (int i = 0; i < 20000; i++) gort_yield(); /* more than one buffer holds */
    CHECK_EQ(gort_trace_stop(), -EBADF);
    all_are_mine();
    CHECK_EQ(gort_trace_start(path), 0); /* the next one is whole */
    CHECK_EQ(gort_trace_stop(), 0);
    unlink(path);
    unlink(file);
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(body, argc, argv), 0);
    all_are_mine();
    return 0;
}
