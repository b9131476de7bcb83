#define _GNU_SOURCE 1
/* Datagrams: whole, with addresses, empty ones too. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <poll.h>

static int s, done;

static int udp(struct sockaddr_in *in) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t n = sizeof *in;
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(fd, (void *)in, n), 0);
    CHECK_EQ(getsockname(fd, (void *)in, &n), 0);
    return fd;
}

static void echo(void *arg) {
    char b[100];
    struct sockaddr_in from;
    for (;;) {
        socklen_t n = sizeof from;
        ssize_t r = gort_recvfrom(s, b, sizeof b, 0, (void *)&from, &n);
        if (r == -EBADF) break;
        CHECK_GE(r, 0);
        CHECK_EQ(gort_sendto(s, b, (size_t)r, 0, (void *)&from, n), r);
    }
    add(&done, 1);
}

static int run(int argc, char **argv) {
    struct sockaddr_in here, there;
    char b[100];
    s = udp(&there);
    int c = udp(&here);
    gort_go(echo, NULL);
    for (int i = 0; i < 100; i++) {
        socklen_t n = sizeof here;
        memset(b, i, sizeof b);
        CHECK_EQ(gort_sendto(c, b, (size_t)(i % 60), 0, (void *)&there, sizeof there), i % 60);
        CHECK_EQ(gort_recvfrom(c, b, sizeof b, 0, (void *)&here, &n), i % 60);
        CHECK_EQ(here.sin_port, there.sin_port);
    }
    CHECK_EQ(gort_recv(c, b, 1, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQ(gort_recv_until(c, b, 1, 0, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_connect(c, (void *)&there, sizeof there), 0);
    CHECK_EQ(gort_send(c, "connected", 9, 0), 9);
    CHECK_EQ(gort_read(c, b, 4), 4); /* the rest of a datagram is gone */
    CHECK_EQ(gort_write(c, "", 0), 0);
    CHECK_EQ(gort_recv(c, b, sizeof b, MSG_WAITALL), 0); /* means nothing here */
    struct iovec v[2] = {{b, 2}, {b + 10, 50}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    CHECK_EQ(gort_send(c, "scatter", 7, 0), 7);
    struct pollfd there_is = {.fd = c, .events = POLLIN};
    CHECK_EQ(gort_poll(&there_is, 1, -1), 1);
    CHECK_EQ(gort_read(c, b, 0), 0); /* nothing was asked for, nothing is taken */
    CHECK_EQ(gort_readv(c, v, 0), 0);
    CHECK_EQ(gort_recvmsg(c, &m, 0), 7);
    CHECK(memcmp(b, "sc", 2) == 0 && memcmp(b + 10, "atter", 5) == 0);
    CHECK_EQ(gort_close(s), 0);
    wait_until(get(&done));
    CHECK_EQ(gort_send(c, "nobody", 6, 0), 6);
    CHECK_EQ(gort_recv(c, b, sizeof b, 0), -ECONNREFUSED);
    CHECK_EQ(gort_close(c), 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
