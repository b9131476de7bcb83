#define _GNU_SOURCE 1
/* A write to a broken pipe or connection is -EPIPE and never a signal. */
#include "../test.h"
#include "../io_net.h"

#include <signal.h>

static int caught;
static void on_pipe(int signo) { caught++; }

static int run(int argc, char **argv) {
    int p[2];
    char b[4] = "abc";
    struct iovec v = {b, 3};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_writev(p[1], &v, 1), -EPIPE);
    CHECK_EQ(gort_write_full(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_close(p[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
    CHECK_EQ(gort_close(p[0]), 0);
    int before = caught;
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_writev(p[1], &v, 1), -EPIPE);
    CHECK_EQ(gort_send(p[1], b, 3, 0), -EPIPE);
    CHECK_EQ(gort_sendmsg(p[1], &m, 0), -EPIPE);
    CHECK_EQ(caught, before);
    CHECK_EQ(gort_close(p[1]), 0);
    tcp_pair(p);
    reset_peer(p[0]);
    ssize_t r;
    while ((r = gort_write(p[1], b, 3)) >= 0) {
    }
    CHECK(r == -ECONNRESET || r == -EPIPE);
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_close(p[1]), 0);
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = SIG_DFL}, now;
    CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    sa.sa_handler = on_pipe; /* the program's handler stays */
    CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    CHECK_EQ(sigaction(SIGPIPE, NULL, &now), 0);
    CHECK(now.sa_handler == on_pipe);
    return 0;
}
