#define _GNU_SOURCE 1
/* Accepting: many at once, no descriptors left, a connection that is gone before it is taken. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <sys/resource.h>

#define CONNECTIONS 300
#define ACCEPTORS 8
static char addr[64];
static int l, accepted, dialled;

static void acceptor(void *arg) {
    for (;;) {
        int fd = gort_accept(l, NULL, NULL);
        if (fd == -EBADF) break;
        CHECK_GE(fd, 0);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
        add(&accepted, 1);
        CHECK_EQ(gort_close(fd), 0);
    }
    add(&dialled, 1);
}

static void dialler(void *arg) {
    dial_until_closed(addr);
    add(&dialled, 1);
}

static void test_many(void) {
    l = listen_loopback(addr, sizeof addr);
    for (int i = 0; i < ACCEPTORS; i++) gort_go(acceptor, NULL);
    for (int i = 0; i < CONNECTIONS; i++) gort_go(dialler, NULL);
    wait_until(get(&dialled) == CONNECTIONS);
    CHECK_EQ(accepted, CONNECTIONS);
    CHECK_EQ(gort_close(l), 0);
    wait_until(get(&dialled) == CONNECTIONS + ACCEPTORS);
}

/* -EMFILE is returned, the connection stays queued and is accepted later. Valgrind keeps the limit
 * itself, with other rules: it lets the kernel accept and closes what is above the limit, and the
 * connection is gone. */
static void test_emfile(void) {
    if (test_valgrind()) return;
    static int taken[70000];
    struct rlimit lim, low;
    int n = 0;
    l = listen_loopback(addr, sizeof addr);
    int c = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(c, 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
    low = lim;
    low.rlim_cur = 100;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (n < 70000 && (taken[n] = dup(l)) >= 0) n++;
    CHECK_EQ(gort_accept(l, NULL, NULL), -EMFILE);
    CHECK_EQ(gort_accept_until(l, NULL, NULL, 0), -EMFILE);
    CHECK_EQ(gort_dial(addr, GORT_FOREVER), -EMFILE);
    CHECK_EQ(gort_listen("127.0.0.1:0", 0), -EMFILE);
    for (int i = 0; i < n; i++) CHECK_EQ(close(taken[i]), 0);
    int fd = gort_accept(l, NULL, NULL);
    CHECK_GE(fd, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
    gort_close(fd), gort_close(c), gort_close(l);
}

/* Reset while still in the queue: accepted or not, nothing is an error, nothing is lost. */
static void test_aborted(void) {
    l = listen_loopback(addr, sizeof addr);
    int c = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(c, 0);
    reset_peer(c);
    c = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(c, 0);
    CHECK_EQ(gort_write(c, "x", 1), 1);
    for (;;) {
        char b;
        int fd = gort_accept(l, NULL, NULL);
        CHECK_GE(fd, 0);
        ssize_t n = gort_read(fd, &b, 1);
        CHECK_EQ(gort_close(fd), 0);
        if (n == 1) break;
        CHECK_EQ(n, -ECONNRESET);
    }
    gort_close(c), gort_close(l);
}

static int run(int argc, char **argv) {
    test_many();
    test_emfile();
    test_aborted();
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit lim;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
    lim.rlim_cur = lim.rlim_max < 900 ? lim.rlim_max : 900;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
    return gort_main(run, argc, argv);
}
