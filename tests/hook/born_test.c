/*
 * What the hook remembers of a descriptor from its beginning (src/hook/create.c): socket,
 * socketpair, pipe, pipe2, eventfd, open, dup; O_NONBLOCK as it is set and taken; connect. Where a
 * guess was right a call parks or answers as it should, and where it was wrong (a FIFO, O_NONBLOCK
 * taken behind the hook's back, a backlog that is full) everybody else goes on, and the result is
 * right.
 */
#include "hook.h"
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { FEW = 20 };

static int ends[MANY][2], got;

static void reader(void *arg) {
    char c = 0;
    CHECK_EQ(read((int)(intptr_t)arg, &c, 1), 1);
    CHECK_EQ(c, 'x');
    add(&got, 1);
}

static void start_reader(int fd) { CHECK_EQ(gort_go(reader, (void *)(intptr_t)fd), 0); }

static void feed(int fd) { CHECK_EQ(write(fd, "x", 1), 1); }

/* Everybody else goes on: of the others there is one that yields for a while. */
static void others_go_on(void) {
    for (int i = 0; i < 100; i++) gort_yield();
}

/* Pipes and pairs of sockets, their copies too: who waits has no thread. */
static void waits_without_a_thread(void) {
    set(&got, 0);
    for (int i = 0; i < MANY; i++) {
        int *e = ends[i];
        CHECK_EQ(i % 3 == 0   ? pipe(e)
                 : i % 3 == 1 ? pipe2(e, O_CLOEXEC)
                              : socketpair(AF_UNIX, SOCK_STREAM, 0, e),
                 0);
        CHECK_EQ(fcntl(e[0], F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQ(!!(fcntl(e[0], F_GETFD) & FD_CLOEXEC), i % 3 == 1);
        if (i % 2) {
            int copy = dup(e[0]);
            CHECK_GE(copy, 0);
            CHECK_EQ(close(e[0]), 0);
            e[0] = copy;
        }
        start_reader(e[0]);
    }
    wait_for_waiting("IO wait", MANY);
    CHECK_LT(threads(), 2 * test_procs() + 14);
    for (int i = 0; i < MANY; i++) feed(ends[i][1]);
    wait_until(get(&got) == MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(close(ends[i][0]) | close(ends[i][1]), 0);
}

/* O_NONBLOCK from the start, and as fcntl sets and takes it. */
static void nonblocking(void) {
    int e[2], s[2];
    char c;
    uint64_t n;
    CHECK_EQ(pipe2(e, O_NONBLOCK), 0);
    CHECK_FAILS(read(e[0], &c, 1), EAGAIN);
    CHECK_EQ(fcntl(e[0], F_SETFL, 0), 0);
    set(&got, 0);
    start_reader(e[0]);
    wait_for_waiting("IO wait", 1);
    feed(e[1]);
    wait_until(get(&got) == 1);
    CHECK_EQ(fcntl(e[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_FAILS(read(e[0], &c, 1), EAGAIN);
    CHECK_EQ(close(e[0]) | close(e[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), 0);
    CHECK_FAILS(read(s[0], &c, 1), EAGAIN);
    CHECK_FAILS(recv(s[0], &c, 1, 0), EAGAIN);
    CHECK_EQ(close(s[0]) | close(s[1]), 0);
    int fd = eventfd(3, EFD_NONBLOCK);
    CHECK_EQ(read(fd, &n, sizeof n), 8);
    CHECK_EQ(n, 3);
    CHECK_FAILS(read(fd, &n, sizeof n), EAGAIN);
    CHECK_EQ(close(fd), 0);
}

/* Taken where the hook does not see it: a thread may wait, and nobody else does. */
static void behind_its_back(void) {
    int e[2], no = 0;
    set(&got, 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(pipe2(e, O_NONBLOCK), 0);
        CHECK_EQ(ioctl(e[0], FIONBIO, &no), 0);
        start_reader(e[0]);
        others_go_on();
        feed(e[1]);
        wait_until(get(&got) == i);
        CHECK_EQ(close(e[0]) | close(e[1]), 0);
    }
}

static int counter;

static void add_to_counter(void *arg) {
    uint64_t n = 2;
    CHECK_EQ(write(counter, &n, sizeof n), 8);
    add(&got, 1);
}

/* A counter that is full makes its writer wait. */
static void full_counter(void) {
    uint64_t n = UINT64_MAX - 1;
    counter = eventfd(0, 0);
    CHECK_EQ(write(counter, &n, sizeof n), 8);
    set(&got, 0);
    CHECK_EQ(gort_go(add_to_counter, NULL), 0);
    others_go_on();
    CHECK_EQ(get(&got), 0);
    CHECK_EQ(read(counter, &n, sizeof n), 8);
    CHECK_EQ(n, UINT64_MAX - 1);
    wait_until(get(&got) == 1);
    CHECK_EQ(read(counter, &n, sizeof n), 8);
    CHECK_EQ(n, 2);
    CHECK_EQ(close(counter), 0);
}

/* What open gave is taken for a file; FIFOs are not, and their readers end up waiting as they
 * should. */
static void fifos(void) {
    char dir[] = "/tmp/gort-born.XXXXXX", path[64];
    int fd[FEW];
    CHECK(mkdtemp(dir) != NULL);
    set(&got, 0);
    for (int i = 0; i < FEW; i++) {
        snprintf(path, sizeof path, "%s/%d", dir, i);
        CHECK_EQ(mkfifo(path, 0600), 0);
        fd[i] = open(path, O_RDWR);
        CHECK_GE(fd[i], 0);
        start_reader(fd[i]);
        CHECK_EQ(unlink(path), 0);
    }
    others_go_on();
    wait_for_waiting("IO wait", FEW - 2 * test_procs() - 4);
    CHECK_LT(threads(), 2 * test_procs() + 14);
    for (int i = 0; i < FEW; i++) feed(fd[i]);
    wait_until(get(&got) == FEW);
    for (int i = 0; i < FEW; i++) CHECK_EQ(close(fd[i]), 0);
    CHECK_EQ(rmdir(dir), 0);
}

static struct sockaddr_storage at;
static socklen_t at_len;

/* A listening socket at an address of its own. */
static int listen_on(int family, int backlog) {
    int fd = socket(family, SOCK_STREAM, 0);
    CHECK_GE(fd, 0);
    memset(&at, 0, sizeof at);
    at.ss_family = (sa_family_t)family;
    at_len = family == AF_UNIX ? sizeof(sa_family_t) : sizeof(struct sockaddr_in);
    if (family == AF_INET) ((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(fd, (struct sockaddr *)&at, at_len), 0);
    at_len = sizeof at;
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &at_len), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    return fd;
}

static void connecter(void *arg) {
    char c = 0;
    int fd = socket(at.ss_family, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&at, at_len), 0);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(read(fd, &c, 1), 1);
    CHECK_EQ(c, 'x');
    CHECK_EQ(close(fd), 0);
    add(&got, 1);
}

/* Their backlog is full: some threads may wait, everybody comes through. (Of TCP a server may
 * forget who was one too many, which then waits for ever, goroutine or not.) */
static void full_backlog(void) {
    int listener = listen_on(AF_UNIX, 1);
    set(&got, 0);
    for (int i = 0; i < FEW; i++) CHECK_EQ(gort_go(connecter, NULL), 0);
    others_go_on();
    CHECK_LT(threads(), 2 * test_procs() + 14);
    for (int i = 0; i < FEW; i++) {
        int fd = accept(listener, NULL, NULL);
        CHECK_GE(fd, 0);
        feed(fd);
        CHECK_EQ(close(fd), 0);
    }
    wait_until(get(&got) == FEW);
    CHECK_EQ(close(listener), 0);
}

/* One after the other, so often that accept no longer asks first; then nobody comes for a while. */
static void many_connections(int family) {
    int listener = listen_on(family, 16);
    for (int i = 0; i < 300; i++) {
        int fd = socket(family, SOCK_STREAM, 0);
        CHECK_EQ(connect(fd, (struct sockaddr *)&at, at_len), 0);
        int conn = accept(listener, NULL, NULL);
        CHECK_GE(conn, 0);
        CHECK_EQ(close(fd) | close(conn), 0);
    }
    set(&got, 0);
    CHECK_EQ(gort_go(connecter, NULL), 0);
    int conn = accept(listener, NULL, NULL);
    feed(conn);
    wait_until(get(&got) == 1);
    CHECK_EQ(close(conn) | close(listener), 0);
}

/* Its owner does not want to wait: connect and accept say so. */
static void connect_nonblocking(void) {
    int listener = listen_on(AF_UNIX, 0), fd;
    CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    CHECK_FAILS(accept(listener, NULL, NULL), EAGAIN);
    for (int i = 0;; i++) {
        CHECK_LT(i, 100);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fd, (struct sockaddr *)&at, at_len) != 0) break;
        ends[i][0] = fd;
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(close(fd) | close(listener), 0);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in far = {
        .sin_family = AF_INET, .sin_port = 9, .sin_addr.s_addr = htonl(0x7f000002)};
    CHECK_EQ(connect(fd, (struct sockaddr *)&far, sizeof far), 0);
    CHECK_EQ(close(fd), 0);
    CHECK_FAILS(connect(-1, (struct sockaddr *)&far, sizeof far), EBADF);
    CHECK_FAILS(connect(1000000, NULL, 0), EBADF);
    CHECK_FAILS(socket(-1, 0, 0), EAFNOSUPPORT);
    CHECK_FAILS(pipe2(ends[0], -1), EINVAL);
    CHECK_FAILS(eventfd(0, -1), EINVAL);
    CHECK_FAILS(socketpair(AF_INET, SOCK_STREAM, 0, ends[0]), EOPNOTSUPP);
}

static int run(int argc, char **argv) {
    waits_without_a_thread();
    nonblocking();
    behind_its_back();
    full_counter();
    fifos();
    full_backlog();
    many_connections(AF_UNIX);
    many_connections(AF_INET);
    connect_nonblocking();
    return 0;
}

HOOK_MAIN(run)
