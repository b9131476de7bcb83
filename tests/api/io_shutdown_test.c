/* gort_shutdown wakes who waits on that side, and leaves the other alone: readers, writers, accept,
 * connect, gort_poll, plain threads, calls that wait by the clock; gort_listen_udp and
 * gort_peer_addr. GORT_DEBUG=relook=0 in tests/script/io_edges.sh: no second look mends it. */
#define _GNU_SOURCE 1
#include "../lib/test.h"
#include "../lib/io_net.h"

static int fd[2], done;
static ssize_t result;
static char much[1 << 20];

enum { TCP, UNIX, DGRAM, SEQPACKET, SORTS };

static void pair_of(int sort) {
    static const int type[] = {0, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    if (sort == TCP) tcp_pair(fd);
    else CHECK_EQ(socketpair(AF_UNIX, type[sort], 0, fd), 0);
}
static void pair_over(void) {
    CHECK_EQ(gort_close(fd[0]), 0);
    CHECK_EQ(gort_close(fd[1]), 0);
}

static ssize_t w_read(void) {
    char c;
    return gort_read(fd[0], &c, 1);
}
static ssize_t w_read_until(void) {
    char c;
    return gort_read_until(fd[0], &c, 1, gort_now() + 3600 * GORT_SEC);
}
static ssize_t w_recvmsg(void) {
    char c;
    struct iovec iov = {&c, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return gort_recvmsg(fd[0], &msg, 0);
}
static ssize_t w_poll(void) {
    struct pollfd p = {.fd = fd[0], .events = POLLIN | POLLRDHUP};
    return gort_poll(&p, 1, -1) == 1 && (p.revents & POLLRDHUP) ? 0 : -1;
}
static ssize_t w_write(void) {
    ssize_t n;
    while ((n = gort_write(fd[0], much, 1000)) > 0) {}
    return n;
}
static ssize_t w_send(void) {
    ssize_t n;
    while ((n = gort_send(fd[0], much, 1000, 0)) > 0) {}
    return n;
}
static ssize_t w_write_full(void) {
    ssize_t n;
    while ((n = gort_write_full(fd[0], much, 4096)) > 0) {}
    return n;
}

static const struct {
    ssize_t (*wait)(void);
    int how;
    ssize_t want;
} waits[] = {
    {w_read, SHUT_RD, 0},         {w_read_until, SHUT_RD, 0},
    {w_recvmsg, SHUT_RD, 0},      {w_read, SHUT_RDWR, 0},
    {w_poll, SHUT_RD, 0},         {w_write, SHUT_WR, -EPIPE},
    {w_send, SHUT_WR, -EPIPE},    {w_write_full, SHUT_WR, -EPIPE},
    {w_write, SHUT_RDWR, -EPIPE},
};
#define WAITS (sizeof waits / sizeof *waits)

static void wait_on(void *arg) {
    size_t i = (size_t)arg;
    result = waits[i].wait();
    add(&done, 1);
}
static void *wait_on_thread(void *arg) {
    wait_on(arg);
    return NULL;
}

/* A writer waits once nothing more fits. */
static bool is_full(void) {
    struct pollfd p = {.fd = fd[0], .events = POLLOUT};
    return poll(&p, 1, 0) == 0;
}

static void check_wait(size_t i, int sort, bool thread) {
    pthread_t t;
    set(&done, 0);
    pair_of(sort);
    bool writes = waits[i].want == -EPIPE;
    if (thread) CHECK_EQ(pthread_create(&t, NULL, wait_on_thread, (void *)i), 0);
    else gort_go(wait_on, (void *)i);
    if (writes) wait_until(is_full());
    if (!thread) wait_parked(1);
    else settle();
    CHECK_EQ(gort_shutdown(fd[0], waits[i].how), 0);
    wait_until(get(&done) == 1);
    CHECKF(result == waits[i].want, "wait %zu of sort %d: %zd", i, sort, result);
    if (thread) CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK(fcntl(fd[0], F_GETFD) >= 0); /* the number is still open */
    pair_over();
}

/* Several of each side: one side ends, the other goes on. */
static int readers, writers;
static void one_reader(void *arg) {
    (void)arg;
    CHECK_EQ(w_read(), 0);
    add(&readers, 1);
}
static void one_writer(void *arg) {
    (void)arg;
    CHECK_EQ(w_write(), -EPIPE);
    add(&writers, 1);
}
static void test_sides(int sort) {
    gort_wg wg = {0};
    readers = writers = 0;
    pair_of(sort);
    for (int i = 0; i < 3; i++) gort_wg_go(&wg, one_reader, NULL);
    for (int i = 0; i < 3; i++) gort_wg_go(&wg, one_writer, NULL);
    wait_until(is_full());
    wait_parked(6);
    CHECK_EQ(gort_shutdown(fd[0], SHUT_RD), 0);
    wait_until(get(&readers) == 3);
    CHECK_EQ(get(&writers), 0);
    CHECK_EQ(gort_shutdown(fd[0], SHUT_WR), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(writers, 3);
    pair_over();
}

/* The call races with the wait: neither is lost. */
static void test_races(void) {
    for (int i = 0; i < 200 / TEST_SCALE; i++) {
        gort_wg wg = {0};
        pair_of(i % 2 ? UNIX : TCP);
        gort_wg_go(&wg, one_reader, NULL);
        for (int k = 0; k < i % 5; k++) gort_yield();
        gort_shutdown(fd[0], i % 3 ? SHUT_RD : SHUT_RDWR);
        gort_wg_wait(&wg);
        pair_over();
    }
}

static void accepts(void *arg) {
    CHECK_EQ(gort_accept((int)(intptr_t)arg, NULL, NULL), -EINVAL);
    add(&done, 1);
}
static void test_listener(const char *addr) {
    int l = gort_listen(addr, 0);
    CHECK_GE(l, 0);
    set(&done, 0);
    gort_go(accepts, (void *)(intptr_t)l);
    gort_go(accepts, (void *)(intptr_t)l);
    wait_parked(2);
    gort_shutdown(l, SHUT_RD);
    wait_until(get(&done) == 2);
    CHECK_EQ(gort_close(l), 0);
}

/* A listener whose queue is full leaves a connect waiting. */
static struct sockaddr_in there;
static int connecting;
static void connects(void *arg) {
    (void)arg;
    int r = gort_connect(connecting, (void *)&there, sizeof there);
    CHECKF(r == -ECONNRESET || r == 0, "connect: %d", r);
    add(&done, 1);
}
static void test_connect(void) {
    enum { MANY = 4 };
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), many[MANY];
    socklen_t n = sizeof there;
    there = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(l, (void *)&there, n), 0);
    CHECK_EQ(listen(l, 0), 0);
    CHECK_EQ(getsockname(l, (void *)&there, &n), 0);
    for (int i = 0; i < MANY; i++) {
        many[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(many[i], (void *)&there, sizeof there);
    }
    connecting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set(&done, 0);
    gort_go(connects, NULL);
    wait_until(get(&done) || count_io_waiters() == 1);
    gort_shutdown(connecting, SHUT_RDWR);
    wait_until(get(&done));
    for (int i = 0; i < MANY; i++) close(many[i]);
    CHECK_EQ(gort_close(connecting), 0);
    CHECK_EQ(gort_close(l), 0);
}

/* An unconnected socket says ENOTCONN, and its readers return all the same. */
static void test_udp(void) {
    static const char *const where[] = {"127.0.0.1:0", "localhost:0", ":0"};
    char addr[64], other[64], text[64], c[8];
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fd[0] = gort_listen_udp(where[i]);
        CHECK_GE(fd[0], 0);
        CHECK_EQ(gort_local_addr(fd[0], addr, sizeof addr), 0);
        CHECK_EQ(fcntl(fd[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        CHECK_EQ(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
        CHECK_EQ(gort_peer_addr(fd[0], text, sizeof text), -ENOTCONN);
        if (i != 1) CHECK_EQ(gort_listen_udp(addr), -EADDRINUSE);
        to.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
        int s = gort_listen_udp("127.0.0.1:0");
        CHECK_GE(s, 0);
        if (i != 1 || addr[0] != '[') {
            struct sockaddr_storage from;
            socklen_t n = sizeof from;
            CHECK_EQ(gort_sendto(s, "hello", 5, 0, (void *)&to, sizeof to), 5);
            CHECK_EQ(gort_recvfrom(fd[0], c, sizeof c, 0, (void *)&from, &n), 5);
            CHECK_EQ(gort_sendto(fd[0], "back", 4, 0, (void *)&from, n), 4);
            CHECK_EQ(gort_recv(s, c, sizeof c, 0), 4);
            CHECK_EQ(gort_connect(s, (void *)&to, sizeof to), 0);
            CHECK_EQ(gort_peer_addr(s, other, sizeof other), 0);
            CHECK_STR(strrchr(other, ':'), strrchr(addr, ':'));
        }
        CHECK_EQ(gort_close(s), 0);
        set(&done, 0);
        readers = 0;
        gort_go(one_reader, NULL);
        wait_parked(1);
        CHECK_EQ(gort_shutdown(fd[0], SHUT_RD), -ENOTCONN);
        wait_until(get(&readers) == 1);
        CHECK_EQ(gort_recv(fd[0], c, sizeof c, 0), 0); /* and so on for ever */
        CHECK_EQ(gort_close(fd[0]), 0);
    }
    CHECK_EQ(gort_listen_udp("unix:@no"), -EINVAL);
    CHECK_EQ(gort_listen_udp("nonsense"), -EINVAL);
    CHECK_EQ(gort_listen_udp(NULL), -EINVAL);
}

static void test_peer(void) {
    char addr[64], peer[64], small[4];
    tcp_pair(fd);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_local_addr(fd[i], addr, sizeof addr), 0);
        CHECK_EQ(gort_peer_addr(fd[!i], peer, sizeof peer), 0);
        CHECK_STR(addr, peer);
    }
    CHECK_EQ(gort_peer_addr(fd[0], small, sizeof small), -ENOSPC);
    pair_over();
    pair_of(UNIX);
    CHECK_EQ(gort_peer_addr(fd[0], peer, sizeof peer), 0);
    CHECK_STR(peer, "unix:");
    pair_over();
    CHECK_EQ(gort_peer_addr(-1, peer, sizeof peer), -EBADF);
}

static int run(int argc, char **argv) {
    (void)argc, (void)argv;
    int before = count_fds();
    for (size_t i = 0; i < WAITS; i++) {
        for (int sort = TCP; sort < SORTS; sort++) {
            bool thread = !test_simulated();
            check_wait(i, sort, false);
            if (thread) check_wait(i, sort, true);
        }
    }
    test_sides(TCP);
    test_sides(UNIX);
    test_sides(DGRAM);
    test_races();
    test_listener("127.0.0.1:0");
    test_listener("unix:@gort-shutdown-test");
    test_connect();
    test_udp();
    test_peer();
    CHECK_EQ(gort_shutdown(-1, SHUT_RD), -EBADF);
    pair_of(UNIX);
    CHECK_EQ(gort_shutdown(fd[0], 77), -EINVAL);
    pair_over();
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(gort_shutdown(fd[0], SHUT_RD), -ENOTSOCK);
    pair_over();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
