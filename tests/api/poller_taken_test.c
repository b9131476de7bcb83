/*
 * The program closes a number that it has not opened, the poller's, and gets it for an epoll set
 * of its own in which something is always ready. A thread that has nothing else to do goes to wait
 * there: what it gets are events of a stranger. They tell it at once, and it does not come back for
 * more. Each event of the program's set comes only once, so those that are left tell how often the
 * runtime was there.
 */
#define _GNU_SOURCE
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { ALL = 500, BATCH = 32 };

static int poller_number(void) {
    for (int fd = 100; fd < 4096; fd++) {
        char path[64], what[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, what, sizeof what - 1) > 0 && strstr(what, "eventpoll")) return fd;
    }
    return -1;
}

static int left_in(int set) {
    struct epoll_event ev[ALL];
    int n = epoll_wait(set, ev, ALL, 0);
    CHECK_GE(n, 0);
    return n;
}

static int app(int argc, char **argv) {
    int ends[2], set = epoll_create1(EPOLL_CLOEXEC), poller = poller_number();
    if (poller < 0) SKIP("the poller's number is not to be found");
    CHECK(set >= 0 && pipe(ends) == 0);
    struct epoll_event ready = {.events = EPOLLOUT | EPOLLONESHOT, .data.u64 = 0x123456789};
    for (int i = 0; i < ALL; i++) {
        int fd = dup(ends[1]);
        if (fd < 0) SKIP("%d descriptors are not to be had", ALL);
        CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ready), 0);
    }
    CHECK_EQ(dup3(set, poller, O_CLOEXEC), poller);
    gort_sleep(20 * GORT_MS); /* with one P this thread itself waits in the poller */
    CHECK_GE(left_in(set), ALL - 2 * BATCH);
    char c = 0;
    CHECK_EQ(gort_write(ends[1], "x", 1), 1);
    CHECK_EQ(gort_read(ends[0], &c, 1), 1); /* the runtime polls on, in a set of its own */
    CHECK_EQ(c, 'x');
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
