/* Sockets: connect, accept, recv and send in all forms, timeouts of the socket. */
#include "hook.h"
#include <netinet/tcp.h>
#include <sys/un.h>

static int listener, done;
static struct sockaddr_in addr;

static void listen_here(void) {
    socklen_t len = sizeof addr;
    addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_EQ(listen(listener, 128), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
}

/* Echoes what comes, through one pair of calls after the other. */
static void serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[64];
    for (int i = 0;; i++) {
        ssize_t n;
        struct iovec iov = {buf, sizeof buf};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        if (i % 3 == 0) n = recv(fd, buf, sizeof buf, 0);
        else if (i % 3 == 1) n = recvfrom(fd, buf, sizeof buf, 0, NULL, NULL);
        else n = recvmsg(fd, &msg, 0);
        CHECK_GE(n, 0);
        if (n == 0) break;
        iov.iov_len = (size_t)n;
        if (i % 3 == 0) CHECK_EQ(send(fd, buf, (size_t)n, 0), n);
        else if (i % 3 == 1) CHECK_EQ(sendto(fd, buf, (size_t)n, 0, NULL, 0), n);
        else CHECK_EQ(sendmsg(fd, &msg, 0), n);
    }
    close(fd);
}

static void acceptor(void *arg) {
    int n = *(int *)arg;
    for (int i = 0; i < n; i++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        int fd = i % 2 ? accept(listener, (struct sockaddr *)&peer, &len)
                       : accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
        CHECK_GE(fd, 0);
        CHECK_EQ(peer.sin_family, AF_INET);
        CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQ(!!(fcntl(fd, F_GETFD) & FD_CLOEXEC), i % 2 == 0);
        gort_go(serve, (void *)(intptr_t)fd);
    }
    add(&done, 1);
}

static void client(void *arg) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    for (int i = 0; i < 12; i++) {
        char out[8], in[8] = "";
        int n = snprintf(out, sizeof out, "%d", i);
        CHECK_EQ(send(fd, out, (size_t)n, 0), n);
        CHECK_EQ(recv(fd, in, (size_t)n, MSG_WAITALL), n);
        CHECK_STR(in, out);
    }
    close(fd);
    add(&done, 1);
}

static void echo(void) {
    int n = 50;
    set(&done, 0);
    gort_go(acceptor, &n);
    for (int i = 0; i < n; i++) gort_go(client, NULL);
    wait_until(get(&done) == n + 1);
}

static void short_timeout(int fd, int option) {
    struct timeval tv = {.tv_usec = 20000};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof tv), 0);
}

static void timeouts(void) {
    int pair[2];
    char c, big[65536] = {0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    short_timeout(pair[0], SO_RCVTIMEO);
    int64_t from = gort_now();
    CHECK_FAILS(recv(pair[0], &c, 1, 0), EAGAIN);
    CHECK_GE(gort_now() - from, 20 * GORT_MS);
    CHECK_FAILS(read(pair[0], &c, 1), EAGAIN);
    CHECK_FAILS(recv(pair[0], &c, 1, MSG_WAITALL), EAGAIN);
    short_timeout(pair[1], SO_SNDTIMEO);
    ssize_t r;
    while ((r = send(pair[1], big, sizeof big, 0)) > 0) {}
    CHECK_EQ(r, -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK_FAILS(write(pair[1], big, sizeof big), EAGAIN);
    close(pair[0]);
    CHECK_FAILS(send(pair[1], &c, 1, MSG_NOSIGNAL), EPIPE);
    close(pair[1]);
    short_timeout(listener, SO_RCVTIMEO);
    CHECK_FAILS(accept(listener, NULL, NULL), EAGAIN);
    CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    CHECK_FAILS(accept(listener, NULL, NULL), EAGAIN);
}

/* A message that makes its connection: all of it is sent, as by libc's call. */
static char opening[100000];
typedef ssize_t open_fn(int fd);
static ssize_t by_sendto(int fd) {
    return sendto(fd, opening, sizeof opening, MSG_FASTOPEN, (void *)&addr, sizeof addr);
}
static ssize_t by_sendmsg(int fd) {
    struct iovec iov[2] = {{opening, 5}, {opening + 5, sizeof opening - 5}};
    struct msghdr msg = {
        .msg_name = &addr, .msg_namelen = sizeof addr, .msg_iov = iov, .msg_iovlen = 2};
    return sendmsg(fd, &msg, MSG_FASTOPEN);
}
static ssize_t gorts(ssize_t r) {
    if (r < 0) errno = (int)-r;
    return r < 0 ? -1 : r;
}
static ssize_t by_gort_sendto(int fd) {
    return gorts(gort_sendto(fd, opening, 5, MSG_FASTOPEN, (void *)&addr, sizeof addr));
}
static ssize_t by_gort_sendmsg(int fd) {
    struct iovec iov = {opening, 5};
    struct msghdr msg = {
        .msg_name = &addr, .msg_namelen = sizeof addr, .msg_iov = &iov, .msg_iovlen = 1};
    return gorts(gort_sendmsg(fd, &msg, MSG_FASTOPEN));
}
static const struct {
    open_fn *call;
    ssize_t n;
} openers[] = {{by_sendto, sizeof opening},
               {by_sendmsg, sizeof opening},
               {by_gort_sendto, 5},
               {by_gort_sendmsg, 5}};
#define OPENERS (sizeof openers / sizeof *openers)

static void opening_reader(void *arg) {
    static char in[sizeof opening];
    for (size_t i = 0; i < OPENERS; i++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) return; /* there is no MSG_FASTOPEN here */
        CHECK_EQ(recv(fd, in, sizeof in, MSG_WAITALL), openers[i].n);
        close(fd);
    }
    add(&done, 1);
}

static void fast_open(bool listens) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){1}, sizeof(int)) != 0) return;
    close(fd);
    set(&done, 0);
    if (listens) gort_go(opening_reader, NULL);
    for (size_t i = 0; i < OPENERS; i++) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        errno = 0;
        ssize_t r = openers[i].call(fd);
        if (r < 0 && errno == EOPNOTSUPP) return; /* switched off: net.ipv4.tcp_fastopen */
        if (listens) CHECKF(r == openers[i].n, "%zu: %zd, errno %d", i, r, errno);
        else CHECKF(r == -1 && errno == ECONNREFUSED, "%zu: %zd, errno %d", i, r, errno);
        close(fd);
    }
    if (!listens) return;
    wait_until(get(&done) == 1);
}

static void refused(void) {
    close(listener);
    fast_open(false);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_FAILS(connect(fd, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int r = connect(fd, (struct sockaddr *)&addr, sizeof addr);
    CHECK(r == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
    close(fd);
    struct sockaddr_un none = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_FAILS(connect(fd, (struct sockaddr *)&none, sizeof none), ENOENT);
    close(fd);
}

static void datagram_reader(void *arg) {
    int fd = *(int *)arg;
    char buf[16] = "";
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    CHECK_EQ(recvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &len), 5);
    CHECK_STR(buf, "hello");
    CHECK_EQ(sendto(fd, "world!", 6, 0, (struct sockaddr *)&from, len), 6);
    add(&done, 1);
}

static void datagrams(void) {
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char buf[16] = "";
    CHECK_EQ(bind(a, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(a, (struct sockaddr *)&at, &len), 0);
    set(&done, 0);
    gort_go(datagram_reader, &a);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(sendto(b, "hello", 5, 0, (struct sockaddr *)&at, len), 5);
    CHECK_EQ(recv(b, buf, sizeof buf, 0), 6);
    CHECK_STR(buf, "world!");
    CHECK_FAILS(recv(b, buf, sizeof buf, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(connect(b, (struct sockaddr *)&at, len), 0);
    wait_until(get(&done) == 1);
    close(a);
    close(b);
}

/* More than fits, in one sendmsg. */
static void msg_reader(void *arg) {
    static char in[300000];
    CHECK_EQ(recv(*(int *)arg, in, sizeof in, MSG_WAITALL), sizeof in);
    for (size_t i = 0; i < sizeof in; i++) CHECK_EQ(in[i], (char)(i % 251));
    add(&done, 1);
}

static void big_message(void) {
    static char out[300000];
    int pair[2];
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i % 251);
    struct iovec iov[2] = {{out, 100000}, {out + 100000, 200000}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    set(&done, 0);
    gort_go(msg_reader, &pair[0]);
    CHECK_EQ(sendmsg(pair[1], &msg, 0), sizeof out);
    wait_until(get(&done) == 1);
    close(pair[0]);
    close(pair[1]);
}

/* The sending side is shut while a call waits there: EPIPE, and SIGPIPE where the kernel raises it,
 * for streams. */
static int pipe_signals, waits_on;
static void on_pipe_signal(int signo) { add(&pipe_signals, 1); }
static void sends_into_full(void *arg) {
    char b[1000] = {0};
    CHECK_FAILS(arg ? write(waits_on, b, sizeof b) : send(waits_on, b, sizeof b, 0), EPIPE);
    add(&done, 1);
}
static void shut_while_sending(int type, void *by_write) {
    char b[1000] = {0};
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, type, 0, pair), 0);
    while (send(pair[0], b, sizeof b, MSG_DONTWAIT) > 0) {}
    waits_on = pair[0];
    set(&done, 0);
    set(&pipe_signals, 0);
    gort_go(sends_into_full, by_write);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(shutdown(pair[0], SHUT_WR), 0);
    wait_until(get(&done) == 1);
    CHECK_EQ(get(&pipe_signals), type == SOCK_STREAM);
    close(pair[0]);
    close(pair[1]);
}

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
/* The one port that it may have is taken: EAGAIN, for which nobody waits. */
static void no_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQ(bind(a, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(a, (struct sockaddr *)&at, &len), 0);
    uint32_t range = (uint32_t)ntohs(at.sin_port) << 16 | ntohs(at.sin_port);
    if (setsockopt(b, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof range) == 0)
        CHECK_FAILS(sendto(b, "x", 1, 0, (struct sockaddr *)&at, len), EAGAIN);
    close(a);
    close(b);
}

/* What is no listener, and a flag that is none: accept says so at once. */
static void refuses_to_accept(void) {
    int pair[2], p[2], udp = socket(AF_INET, SOCK_DGRAM, 0),
                       fresh = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(udp >= 0 && fresh >= 0 && pipe(p) == 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const struct {
        int fd, flags, error;
    } cases[] = {{pair[0], 0, EINVAL}, {fresh, 0, EINVAL},         {udp, 0, EOPNOTSUPP},
                 {p[0], 0, ENOTSOCK},  {listener, 0x1234, EINVAL}, {-1, 0, EBADF}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(accept4(cases[i].fd, NULL, NULL, cases[i].flags), -1);
        CHECK_EQ(errno, cases[i].error);
    }
    int fds[] = {pair[0], pair[1], p[0], p[1], udp, fresh};
    for (int i = 0; i < 6; i++) close(fds[i]);
}

static int run(int argc, char **argv) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    signal(SIGPIPE, on_pipe_signal);
    for (int i = 0; i < 6; i++) shut_while_sending(types[i / 2], i % 2 ? &done : NULL);
    no_port();
    listen_here();
    refuses_to_accept();
    echo();
    datagrams();
    big_message();
    fast_open(true);
    timeouts();
    refused();
    return 0;
}
HOOK_MAIN(run)
