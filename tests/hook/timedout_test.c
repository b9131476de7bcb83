/* A connection that the kernel gives up ends a call that waits with ETIMEDOUT, as libc's does. Only
 * the socket's own timeout (SO_RCVTIMEO, SO_SNDTIMEO) is told as EAGAIN. */
#include "hook.h"
#include <netinet/tcp.h>

enum { READ, READV, RECV, RECVFROM, RECVMSG, WRITE, WRITEV, SEND, SENDMSG, CALLS };

typedef struct Case {
    int call, fd;
} Case;

static gort_wg wg;

static ssize_t waits(int call, int fd) {
    char byte = 0;
    struct iovec iov[2] = {{&byte, 1}, {&byte, 1}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1};
    switch (call) {
    case READ: return read(fd, &byte, 1);
    case READV: return readv(fd, iov, 2);
    case RECV: return recv(fd, &byte, 1, 0);
    case RECVFROM: return recvfrom(fd, &byte, 1, 0, NULL, NULL);
    case RECVMSG: return recvmsg(fd, &msg, 0);
    case WRITE: return write(fd, &byte, 1);
    case WRITEV: return writev(fd, iov, 2);
    case SEND: return send(fd, &byte, 1, MSG_NOSIGNAL);
    default: return sendmsg(fd, &msg, MSG_NOSIGNAL);
    }
}

static void one(void *arg) {
    Case *c = arg;
    errno = 0;
    ssize_t r = waits(c->call, c->fd);
    CHECKF(r == -1 && errno == ETIMEDOUT, "call %d: %zd, errno %d", c->call, r, errno);
    gort_wg_done(&wg);
}

static bool sends(int fd) {
    static const char block[65536];
    return send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* The other end has acknowledged all that it was sent: what is left here is more than it has room
 * for, and stays. */
static bool acknowledged(int fd) {
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return info.tcpi_unacked == 0;
}

/* What was sent fills both ends, nobody reads it, and after half a second without an answer to its
 * probes the kernel gives the connection up. */
static int stuck(const struct sockaddr_in *addr, bool own_timeout) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), ms = 500;
    CHECK_EQ(connect(fd, (const struct sockaddr *)addr, sizeof *addr), 0);
    if (own_timeout) {
        struct timeval hour = {3600, 0};
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour), 0);
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &hour, sizeof hour), 0);
    }
    while (sends(fd)) {
        while (sends(fd)) {}
        wait_until(acknowledged(fd));
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms), 0);
    return fd;
}

static int app(int argc, char **argv) {
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
    CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_EQ(listen(listener, 128), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    Case cases[2 * CALLS];
    for (int i = 0; i < 2 * CALLS; i++) {
        cases[i] = (Case){i % CALLS, stuck(&addr, i >= CALLS)};
        gort_wg_add(&wg, 1);
        CHECK_EQ(gort_go(one, &cases[i]), 0);
    }
    gort_wg_wait(&wg);
    for (int i = 0; i < 2 * CALLS; i++) close(cases[i].fd);
    close(listener);
    return 0;
}
HOOK_MAIN(app)
