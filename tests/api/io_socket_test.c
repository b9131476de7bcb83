#define _GNU_SOURCE 1
/* TCP: echo, half-close, reset, refusal, all flags of recv and send. */
#include "../lib/test.h"
#include "../lib/io_net.h"

static void echo(void *arg) {
    int fd = (int)(intptr_t)arg;
    char b[1000];
    ssize_t n;
    while ((n = gort_read(fd, b, sizeof b)) > 0) CHECK_EQ(gort_write_full(fd, b, (size_t)n), n);
    CHECK_EQ(n, 0);
    CHECK_EQ(gort_close(fd), 0);
}

static char addr[64];
static int done;

static void client(void *arg) {
    int fd = gort_dial(addr, GORT_FOREVER);
    char out[64], in[64];
    CHECK_GE(fd, 0);
    for (int i = 0; i < 200; i++) {
        memset(out, i + (int)(intptr_t)arg, sizeof out);
        CHECK_EQ(gort_write(fd, out, sizeof out), sizeof out);
        CHECK_EQ(gort_read_full(fd, in, sizeof in), sizeof in);
        CHECK(memcmp(in, out, sizeof in) == 0);
    }
    CHECK_EQ(gort_close(fd), 0);
    add(&done, 1);
}

static void test_echo(void) {
    int l = listen_loopback(addr, sizeof addr);
    for (intptr_t i = 0; i < 20; i++) gort_go(client, (void *)i);
    for (int i = 0; i < 20; i++) {
        int fd = gort_accept(l, NULL, NULL);
        CHECK_GE(fd, 0);
        CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        gort_go(echo, (void *)(intptr_t)fd);
    }
    wait_until(get(&done) == 20);
    CHECK_EQ(gort_close(l), 0);
}

static int fd[2];
static ssize_t got;

static void read_one(void *arg) {
    char b[100];
    ssize_t n = gort_read(fd[0], b, sizeof b);
    set(&got, n);
    add(&done, 1);
}

/* The end of the peer's sending is the end of file, and this side can still send. */
static void test_half_close(void) {
    char b[4];
    tcp_pair(fd);
    set(&done, 0);
    gort_go(read_one, NULL);
    wait_parked(1);
    CHECK_EQ(shutdown(fd[1], SHUT_WR), 0);
    wait_until(get(&done));
    CHECK_EQ(got, 0);
    CHECK_EQ(gort_write(fd[0], "abcd", 4), 4);
    CHECK_EQ(gort_read_full(fd[1], b, 4), 4);
    gort_close(fd[0]), gort_close(fd[1]);
}

/* Data and the end in one packet, after a read that took less than it asked for: the next read
 * must see the end and not wait for another edge. */
static void test_data_and_end(void) {
    char b[100];
    for (int i = 0; i < 50; i++) {
        tcp_pair(fd);
        CHECK_EQ(gort_write(fd[1], "x", 1), 1);
        CHECK_EQ(gort_read(fd[0], b, sizeof b), 1);
        set(&done, 0);
        gort_go(read_one, NULL); /* registers */
        if (i % 2) wait_parked(1);
        CHECK_EQ(gort_write(fd[1], "abc", 3), 3);
        CHECK_EQ(gort_close(fd[1]), 0);
        wait_until(get(&done));
        CHECK_EQ(got, 3);
        CHECK_EQ(gort_read(fd[0], b, sizeof b), 0);
        CHECK_EQ(gort_read(fd[0], b, sizeof b), 0);
        CHECK_EQ(gort_close(fd[0]), 0);
    }
}

static void test_reset(void) {
    char b[4];
    tcp_pair(fd);
    set(&done, 0);
    gort_go(read_one, NULL);
    wait_parked(1);
    reset_peer(fd[1]);
    wait_until(get(&done));
    CHECK_EQ(got, -ECONNRESET);
    CHECK_EQ(gort_write(fd[0], "x", 1), -EPIPE);
    CHECK_EQ(gort_read(fd[0], b, 1), 0);
    CHECK_EQ(gort_close(fd[0]), 0);
}

static void test_refused(void) {
    int l = listen_loopback(addr, sizeof addr);
    CHECK_EQ(gort_close(l), 0);
    CHECK_EQ(gort_dial(addr, GORT_FOREVER), -ECONNREFUSED);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(gort_connect(s, (void *)&in, sizeof in), -ECONNREFUSED);
    CHECK_EQ(gort_close(s), 0);
}

static void connect_one(void *arg) {
    struct sockaddr_in in;
    socklen_t n = sizeof in;
    CHECK_EQ(getsockname((int)(intptr_t)arg, (void *)&in, &n), 0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(gort_connect(s, (void *)&in, n), 0);
    CHECK_EQ(gort_connect(s, (void *)&in, n), -EISCONN);
    CHECK_EQ(gort_close(s), 0);
    add(&done, 1);
}

/* A blocking listener and blocking sockets, as plain code makes them. */
static void test_blocking_ones(void) {
    int l = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(l, (void *)&in, sizeof in), 0);
    CHECK_EQ(listen(l, 10), 0);
    set(&done, 0);
    for (int i = 0; i < 5; i++) {
        gort_go(connect_one, (void *)(intptr_t)l);
        struct sockaddr_in from;
        socklen_t n = sizeof from;
        if (i % 2) CHECK_EQ(fcntl(l, F_SETFL, 0), 0); /* the program clears it again */
        int s = gort_accept(l, (void *)&from, &n);
        CHECK_GE(s, 0);
        CHECK_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        char b;
        CHECK_EQ(fcntl(s, F_SETFL, 0), 0);
        CHECK_EQ(gort_read(s, &b, 1), 0);
        CHECK_EQ(gort_close(s), 0);
    }
    wait_until(get(&done) == 5);
    CHECK_EQ(gort_close(l), 0);
}

static void send_slowly(void *arg) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_write(fd[1], "0123456789", 10), 10);
        gort_yield();
    }
    add(&done, 1);
}

static void send_rest(void *arg) {
    wait_parked(1);
    CHECK_EQ(gort_write(fd[1], "0123456789012345678901234567890123456789", 40), 40);
}

static void test_flags(void) {
    char b[200];
    tcp_pair(fd);
    CHECK_EQ(gort_recv(fd[0], b, sizeof b, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQ(gort_write(fd[1], "peek", 4), 4);
    struct pollfd p = {.fd = fd[0], .events = POLLIN};
    CHECK_EQ(gort_poll(&p, 1, -1), 1);
    CHECK_EQ(gort_recv(fd[0], b, sizeof b, MSG_PEEK), 4);
    CHECK_EQ(gort_recv(fd[0], b, sizeof b, MSG_DONTWAIT), 4);
    CHECK_EQ(gort_recv(fd[0], b, sizeof b, MSG_DONTWAIT), -EAGAIN);
    set(&done, 0);
    gort_go(send_slowly, NULL);
    struct iovec v[3] = {{b, 7}, {b + 7, 20}, {b + 27, 23}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
    CHECK_EQ(gort_recv(fd[0], b, 60, MSG_WAITALL | MSG_PEEK), 60);
    CHECK_EQ(gort_recv(fd[0], b, 50, MSG_WAITALL), 50);
    CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_WAITALL), 50);
    for (int i = 0; i < 50; i++) CHECK_EQ(b[i], '0' + i % 10);
    wait_until(get(&done));
    CHECK_EQ(gort_write(fd[1], b, 10), 10);
    CHECK_EQ(gort_poll(&p, 1, -1), 1);
    gort_go(send_rest, NULL);
    CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_WAITALL | MSG_PEEK), 50);
    CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_WAITALL), 50);
    /* Some bytes and then the end, or a deadline: the count, and the condition on the next call. */
    CHECK_EQ(gort_write(fd[1], "abc", 3), 3);
    CHECK_EQ(gort_recv_until(fd[0], b, 10, MSG_WAITALL, gort_now() + 20 * GORT_MS), 3);
    CHECK_EQ(gort_write(fd[1], "abc", 3), 3);
    CHECK_EQ(gort_recv_until(fd[0], b, 10, MSG_WAITALL | MSG_PEEK, gort_now() + 20 * GORT_MS), 3);
    CHECK_EQ(gort_recvmsg_until(fd[0], &m, MSG_WAITALL | MSG_PEEK, gort_now() + 20 * GORT_MS), 3);
    CHECK_EQ(gort_close(fd[1]), 0);
    CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_WAITALL | MSG_PEEK), 3);
    CHECK_EQ(gort_recv(fd[0], b, 10, MSG_WAITALL | MSG_PEEK), 3);
    CHECK_EQ(gort_recv(fd[0], b, 10, MSG_WAITALL), 3);
    CHECK_EQ(gort_recv(fd[0], b, 10, MSG_WAITALL), 0);
    CHECK_EQ(gort_close(fd[0]), 0);
}

/* A peek for all stops where the kernel's does: at bytes that a descriptor comes with. */
static void test_peek_passed(void) {
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } u = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)),
                 .cmsg_level = SOL_SOCKET,
                 .cmsg_type = SCM_RIGHTS}};
    char b[20] = "0123456789";
    int passed;
    struct iovec v = {b, 10};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u.room};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    memcpy(CMSG_DATA(&u.h), &fd[0], sizeof(int));
    CHECK_EQ(gort_sendmsg(fd[1], &m, 0), 10);
    CHECK_EQ(gort_send(fd[1], b, 10, 0), 10);
    v.iov_len = 15;
    CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_PEEK | MSG_WAITALL), 10);
    CHECK_EQ(u.h.cmsg_type, SCM_RIGHTS);
    memcpy(&passed, CMSG_DATA(&u.h), sizeof(int));
    CHECK_EQ(gort_close(passed), 0);
    CHECK_EQ(recvmsg(fd[0], &m, MSG_PEEK | MSG_WAITALL), 10);
    memcpy(&passed, CMSG_DATA(&u.h), sizeof(int));
    CHECK_EQ(gort_close(passed), 0);
    CHECK(gort_close(fd[0]) == 0 && gort_close(fd[1]) == 0);
}

#define BULK (8 << 20)

static void bulk_writer(void *arg) {
    char *b = calloc(1, BULK);
    for (size_t i = 0; i < BULK; i++) b[i] = (char)(i % 251);
    CHECK_EQ(gort_write_full(fd[1], b, BULK), BULK);
    CHECK_EQ(gort_close(fd[1]), 0);
    free(b);
}

/* Both directions' queues fill and drain many times. */
static void test_bulk(void) {
    static char b[65536];
    size_t at = 0;
    ssize_t n;
    tcp_pair(fd);
    gort_go(bulk_writer, NULL);
    while ((n = gort_recv(fd[0], b, sizeof b, 0)) > 0)
        for (ssize_t i = 0; i < n; i++, at++) CHECK_EQ(b[i], (char)(at % 251));
    CHECK_EQ(n, 0);
    CHECK_EQ(at, BULK);
    CHECK_EQ(gort_close(fd[0]), 0);
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_echo();
    test_half_close();
    test_data_and_end();
    test_reset();
    test_refused();
    test_blocking_ones();
    test_flags();
    test_peek_passed();
    test_bulk();
    wait_until(gort_count() == 1);
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
