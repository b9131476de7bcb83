// no-stderr: deadlock
/* One descriptor among negative ones can still wake a poll, and so can a limit without any. */
#include "../lib/test.h"

#include <sys/timerfd.h>

static int body(int argc, char **argv) {
    struct itimerspec soon = {.it_value = {.tv_nsec = 50 * GORT_MS}};
    struct pollfd some[3] = {{.fd = -1}, {.fd = timerfd_create(CLOCK_MONOTONIC, 0)}, {.fd = -7}};
    some[1].events = POLLIN;
    CHECK_EQ(timerfd_settime(some[1].fd, 0, &soon, NULL), 0);
    CHECK_EQ(gort_poll(some, 3, -1), 1);
    CHECK_EQ(gort_poll(NULL, 0, 50), 0);
    some[1].fd = -some[1].fd;
    CHECK_EQ(gort_poll(some, 3, 50), 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
