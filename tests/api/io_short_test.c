#define _GNU_SOURCE 1
/* The short way of reads and writes (src/io/fastsocket.c), where it is left: a number that is no
 * socket any more, plain threads, lengths that are none, a write that does not fit, a close in the
 * middle of one, several readers of one edge. Each has been a socket before that the poller knows,
 * or it would not be the short way. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <pthread.h>

static int done;
static int s[2];

/* Both ends are registered, and s[0] is drained where it is TCP. */
static void known_pair(bool tcp) {
    char b[64];
    if (tcp) tcp_pair(s);
    else CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_read_until(s[i], b, sizeof b, gort_now() + 50 * GORT_US), -ETIMEDOUT);
        CHECK_EQ(gort_write(s[1 - i], "abc", 3), 3);
        CHECK_EQ(gort_read(s[i], b, sizeof b), 3);
    }
}

static void close_pair(void) {
    CHECK_EQ(gort_close(s[0]), 0);
    CHECK_EQ(gort_close(s[1]), 0);
}

/* A pipe in its place: what is for sockets only says so, the others work. */
static void test_no_socket(void) {
    for (int i = 0; i < 4; i++) {
        int p[2];
        char b[8];
        known_pair(i % 2);
        CHECK_EQ(pipe(p), 0);
        CHECK_EQ(dup2(p[0], s[0]), s[0]);
        CHECK_EQ(dup2(p[1], s[1]), s[1]);
        CHECK_EQ(close(p[0]), 0);
        CHECK_EQ(close(p[1]), 0);
        if (i < 2) {
            CHECK_EQ(gort_send(s[1], "x", 1, 0), -ENOTSOCK);
            CHECK_EQ(gort_write(s[1], "12", 2), 2);
            CHECK_EQ(gort_read(s[0], b, 8), 2);
        } else {
            CHECK_EQ(gort_write_full(s[1], "345", 3), 3);
            CHECK_EQ(gort_recv(s[0], b, 8, 0), -ENOTSOCK);
            CHECK_EQ(gort_read(s[0], b, 8), 3);
        }
        close_pair();
    }
}

/* The same as the forms with a deadline, which know only the general way. */
static void test_lengths(void) {
    char b[4] = {0};
    static const size_t odd[] = {0, (size_t)-EAGAIN, (size_t)-EINTR, (size_t)-1, (size_t)1 << 63};
    known_pair(true);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        size_t n = odd[i];
        /* more than there is memory, on purpose: memcheck says so, rightly */
        if (n != 0 && test_valgrind()) break;
        CHECK_EQ(gort_read(s[0], b, n), gort_read_until(s[0], b, n, GORT_FOREVER));
        CHECK_EQ(gort_write(s[0], b, n), gort_write_until(s[0], b, n, GORT_FOREVER));
        CHECK_EQ(gort_write_full(s[0], b, n), gort_write_full_until(s[0], b, n, GORT_FOREVER));
    }
    close_pair();
    CHECK_EQ(gort_read(-1, b, 1), -EBADF);
    CHECK_EQ(gort_write(-1, b, 1), -EBADF);
    CHECK_EQ(gort_write_full(1 << 30, b, 1), -EBADF);
    CHECK_EQ(gort_read(s[0], b, 1), -EBADF);
    CHECK_EQ(gort_write_full(s[0], b, 1), -EBADF);
    CHECK_EQ(gort_send(s[0], b, 1, 0), -EBADF);
}

static void *plain_reader(void *arg) {
    char b[8];
    CHECK_EQ(gort_recv(s[0], b, 8, 0), 2);
    CHECK_EQ(gort_write_full(s[0], b, 2), 2);
    CHECK_EQ(gort_read(s[0], b, 8), 0);
    return NULL;
}

static void test_thread(void) {
    pthread_t th;
    char b[8];
    known_pair(true);
    CHECK_EQ(pthread_create(&th, NULL, plain_reader, NULL), 0);
    CHECK_EQ(gort_write(s[1], "ok", 2), 2);
    CHECK_EQ(gort_read(s[1], b, 8), 2);
    CHECK_EQ(gort_close(s[1]), 0);
    CHECK_EQ(pthread_join(th, NULL), 0);
    CHECK_EQ(gort_close(s[0]), 0);
}

#define MUCH (4 << 20) /* more than fits between the two ends */
static unsigned char much[MUCH], came[MUCH];

static void small_buffers(void) {
    int size = 64 << 10;
    CHECK_EQ(setsockopt(s[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    CHECK_EQ(setsockopt(s[0], SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
}

static void write_much(void *arg) {
    ssize_t want = (ssize_t)(intptr_t)arg;
    CHECK_EQ(gort_write_full(s[1], much, MUCH), want);
    add(&done, 1);
}

static void test_rest(void) {
    for (size_t i = 0; i < MUCH; i++) much[i] = (unsigned char)(i * 7 + i / 251);
    for (int tcp = 0; tcp < 2; tcp++) {
        known_pair(tcp);
        small_buffers();
        set(&done, 0);
        gort_go(write_much, (void *)(intptr_t)MUCH);
        wait_until(count_io_waiters() == 1);
        CHECK_EQ(gort_read_full(s[0], came, MUCH), MUCH);
        CHECK(memcmp(much, came, MUCH) == 0);
        wait_until(get(&done));
        gort_go(write_much, (void *)(intptr_t)-EBADF); /* closed while the rest waits */
        wait_until(count_io_waiters() == 1);
        CHECK_EQ(gort_close(s[1]), 0);
        wait_until(get(&done) == 2);
        CHECK_EQ(gort_close(s[0]), 0);
    }
}

#define READERS 5
static void read_one(void *arg) {
    char c = 0;
    CHECK_EQ(gort_read(s[0], &c, 1), 1);
    CHECK(c >= 'a' && c < 'a' + READERS);
    add(&done, 1);
}

/* One edge for all of them; each passes on what is left. */
static void test_readers(void) {
    for (int tcp = 0; tcp < 2; tcp++) {
        known_pair(tcp);
        set(&done, 0);
        for (int i = 0; i < READERS; i++) gort_go(read_one, NULL);
        wait_until(count_io_waiters() == READERS);
        CHECK_EQ(gort_write(s[1], "abcde", READERS), READERS);
        wait_until(get(&done) == READERS);
        close_pair();
    }
}

static void closed_reader(void *arg) {
    char c;
    CHECK_EQ(gort_read(s[0], &c, 1), -EBADF);
    add(&done, 1);
}

static void test_closed(void) {
    known_pair(true);
    set(&done, 0);
    for (int i = 0; i < 2; i++) gort_go(closed_reader, NULL);
    wait_until(count_io_waiters() == 2);
    close_pair();
    wait_until(get(&done) == 2);
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_no_socket();
    test_lengths();
    test_thread();
    test_rest();
    test_readers();
    test_closed();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
