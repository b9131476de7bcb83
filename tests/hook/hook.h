/* What the tests of the hook share. They call libc, on goroutines. */
#ifndef HOOK_TEST_H
#define HOOK_TEST_H

#define _GNU_SOURCE 1
#include "../lib/waiting.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 200

TEST_UNUSED static uint64_t threads(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.threads;
}

/* Waits until so many goroutines wait with that reason. */
#define wait_for_waiting(reason, n) wait_until(waiting_for(reason) >= (n))

/* The hook must really be there: a test that passes without it shows nothing. */
TEST_UNUSED static void check_hooked(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    bool there = false;
    while (fgets(line, sizeof line, f)) there |= strstr(line, "libgort-hook.so") != NULL;
    fclose(f);
    CHECK(there);
}

/* The call failed with that errno. */
#define CHECK_FAILS(call, e)  \
    do {                      \
        errno = 0;            \
        CHECK_EQ((call), -1); \
        CHECK_EQ(errno, (e)); \
    } while (0)

#define HOOK_MAIN(fn)                     \
    int main(int argc, char **argv) {     \
        check_hooked();                   \
        return gort_main(fn, argc, argv); \
    }

#endif
