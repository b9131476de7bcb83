#define _GNU_SOURCE 1
/* The same calls from plain threads, with no runtime and beside one. */
#include "../lib/test.h"
#include "../lib/io_net.h"

static int p[2], s[2], l, done;
static char addr[64];

static void *writer(void *arg) {
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_write(p[1], &i, sizeof i), sizeof i);
        if (i % 10 == 0) test_pause(100);
    }
    return NULL;
}

static void *blocked_read(void *arg) {
    char b;
    CHECK_EQ(gort_read(p[0], &b, 1), -EBADF);
    add(&done, 1);
    return NULL;
}
static void *blocked_poll(void *arg) {
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    CHECK_EQ(gort_poll(&f, 1, -1), -EBADF);
    add(&done, 1);
    return NULL;
}
static void *blocked_accept(void *arg) {
    CHECK_EQ(gort_accept(l, NULL, NULL), -EBADF);
    add(&done, 1);
    return NULL;
}
static void *echo(void *arg) {
    char b[64];
    ssize_t n;
    int fd = gort_accept(l, NULL, NULL);
    CHECK_GE(fd, 0);
    while ((n = gort_recv(fd, b, sizeof b, 0)) > 0) CHECK_EQ(gort_write_full(fd, b, (size_t)n), n);
    CHECK_EQ(n, 0);
    CHECK_EQ(gort_close(fd), 0);
    return NULL;
}

static void in_threads(void) {
    pthread_t t[3];
    int before = count_fds(), v;
    char b[64];
    errno = 4321;
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(pthread_create(&t[0], NULL, writer, NULL), 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_read_full(p[0], &v, sizeof v), sizeof v);
        CHECK_EQ(v, i);
    }
    pthread_join(t[0], NULL);
    int64_t start = gort_now();
    CHECK_EQ(gort_read_until(p[0], b, 1, start + 5 * GORT_MS), -ETIMEDOUT);
    CHECK_GE(gort_now() - start, 5 * GORT_MS);
    CHECK_EQ(gort_read_until(p[0], b, 1, 0), -ETIMEDOUT);
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    CHECK_EQ(gort_poll(&f, 1, 2), 0);
    CHECK_EQ(gort_write(p[1], "x", 1), 1);
    CHECK_EQ(gort_poll(&f, 1, -1), 1);
    CHECK_EQ(gort_read(p[0], b, 10), 1);

    set(&done, 0);
    l = listen_loopback(addr, sizeof addr);
    int fds = count_fds();
    CHECK_EQ(pthread_create(&t[0], NULL, blocked_read, NULL), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, blocked_poll, NULL), 0);
    CHECK_EQ(pthread_create(&t[2], NULL, blocked_accept, NULL), 0);
    wait_until(count_fds() == fds + 3); /* a thread in its wait has a descriptor for it */
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_close(l), 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    CHECK_EQ(done, 3);
    CHECK_EQ(gort_close(p[1]), 0);

    l = listen_loopback(addr, sizeof addr);
    CHECK_EQ(pthread_create(&t[0], NULL, echo, NULL), 0);
    int c = gort_dial(addr, gort_now() + 100 * GORT_SEC);
    CHECK_GE(c, 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_send(c, "hello", 5, 0), 5);
        CHECK_EQ(gort_recv(c, b, 5, MSG_WAITALL), 5);
    }
    CHECK_EQ(gort_close(c), 0);
    pthread_join(t[0], NULL);
    CHECK_EQ(gort_close(l), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    CHECK_EQ(gort_close(s[1]), 0);
    CHECK_EQ(gort_send(s[0], "x", 1, 0), -EPIPE); /* and no signal, without a runtime too */
    CHECK_EQ(gort_write(s[0], "x", 1), -EPIPE);
    CHECK_EQ(gort_close(s[0]), 0);
    CHECK_EQ(gort_close(s[0]), -EBADF);
    int fd = gort_open("/proc/self/exe", O_RDONLY, 0);
    CHECK_EQ(gort_pread(fd, b, 4, 0), 4);
    CHECK_EQ(gort_read(fd, b, 4), 4);
    CHECK_EQ(gort_close(fd), 0);
    CHECK_EQ(gort_dial("localhost:1", gort_now() + 60 * GORT_SEC) < 0, 1);
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(errno, 4321);
}

static void *as_thread(void *arg) {
    in_threads();
    set((int *)arg, 1);
    return NULL;
}

/* A goroutine and a plain thread at the two ends. */
static void *thread_end(void *arg) {
    int v;
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(gort_read_full(s[1], &v, sizeof v), sizeof v);
        CHECK_EQ(v, i);
        CHECK_EQ(gort_write(s[1], &v, sizeof v), sizeof v);
    }
    return NULL;
}

static int run(int argc, char **argv) {
    pthread_t t;
    int over = 0, v;
    CHECK_EQ(pthread_create(&t, NULL, as_thread, &over), 0);
    wait_until(get(&over));
    pthread_join(t, NULL);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    CHECK_EQ(pthread_create(&t, NULL, thread_end, NULL), 0);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(gort_write(s[0], &i, sizeof i), sizeof i);
        CHECK_EQ(gort_read_full(s[0], &v, sizeof v), sizeof v);
        CHECK_EQ(v, i);
    }
    pthread_join(t, NULL);
    gort_close(s[0]), gort_close(s[1]);
    return 0;
}

/* A runtime that ends while goroutines wait; the next one finds nothing of it. */
static void waits_for_ever(void *arg) {
    char b;
    gort_read(p[0], &b, 1);
    FAILF("a goroutine of a runtime that has ended went on");
}
static int leaves_waiters(int argc, char **argv) {
    for (int i = 0; i < 5; i++) gort_go(waits_for_ever, NULL);
    wait_parked(5);
    return 0;
}
static int uses_it_again(int argc, char **argv) {
    char b;
    CHECK_EQ(gort_read_until(p[0], &b, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(p[1], "x", 1), 1);
    CHECK_EQ(gort_read(p[0], &b, 1), 1);
    return 0;
}

int main(int argc, char **argv) {
    in_threads();
    int before = count_fds();
    CHECK_EQ(gort_main(run, argc, argv), 0);
    in_threads();
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(pipe(p), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_main(leaves_waiters, argc, argv), 0);
        CHECK_EQ(gort_main(uses_it_again, argc, argv), 0);
    }
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_close(p[1]), 0);
    CHECK_EQ(count_fds(), before);
    return 0;
}
