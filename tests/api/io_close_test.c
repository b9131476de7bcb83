#define _GNU_SOURCE 1
/* gort_close wakes whoever is blocked with -EBADF, also when the number is taken again at once; of
 * two closes one succeeds. */
#include "../lib/test.h"
#include "../lib/io_net.h"

static int fd[2], p[2], done, bad;

static void in_read(void *arg) {
    char b[8];
    CHECK_EQ(gort_read(fd[0], b, sizeof b), -EBADF);
    add(&done, 1);
}
static void in_write(void *arg) {
    static char b[1 << 16];
    ssize_t r;
    while ((r = gort_write(fd[0], b, sizeof b)) > 0) {}
    CHECK_EQ(r, -EBADF);
    add(&done, 1);
}
static void in_poll(void *arg) {
    struct pollfd q[2] = {{.fd = fd[0], .events = POLLIN}, {.fd = p[0], .events = POLLIN}};
    CHECK_EQ(gort_poll(q, 2, -1), -EBADF);
    add(&done, 1);
}
static void in_accept(void *arg) {
    CHECK_EQ(gort_accept((int)(intptr_t)arg, NULL, NULL), -EBADF);
    add(&done, 1);
}
static void in_read_until(void *arg) {
    char b[8];
    CHECK_EQ(gort_read_until(fd[0], b, sizeof b, gort_now() + 1000 * GORT_SEC), -EBADF);
    add(&done, 1);
}
static void *thread_in_read(void *arg) {
    in_read(NULL);
    return NULL;
}
static void *thread_in_poll(void *arg) {
    in_poll(NULL);
    return NULL;
}

static void test_wakes_all(void) {
    pthread_t t[2];
    hold_low_numbers();
    CHECK_EQ(pipe(p), 0);
    tcp_pair(fd);
    free_low_numbers();
    set(&done, 0);
    for (int i = 0; i < 3; i++) {
        gort_go(in_read, NULL);
        gort_go(in_write, NULL);
        gort_go(in_poll, NULL);
        gort_go(in_read_until, NULL);
    }
    int before = count_fds();
    CHECK_EQ(pthread_create(&t[0], NULL, thread_in_read, NULL), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, thread_in_poll, NULL), 0);
    wait_until(count_io_waiters() == 12);  /* all in their calls, for the number is reused; */
    wait_until(count_fds() == before + 2); /* a thread in its wait has a descriptor for it */
    CHECK_EQ(gort_close(fd[0]), 0);
    int again = fcntl(p[0], F_DUPFD, fd[0]); /* takes the number */
    CHECK_EQ(again, fd[0]);
    wait_until(get(&done) == 14);
    pthread_join(t[0], NULL), pthread_join(t[1], NULL);
    gort_close(again), gort_close(fd[1]), gort_close(p[0]), gort_close(p[1]);
}

static void test_accept(void) {
    char addr[64];
    int l = listen_loopback(addr, sizeof addr);
    set(&done, 0);
    for (int i = 0; i < 4; i++) gort_go(in_accept, (void *)(intptr_t)l);
    wait_until(count_io_waiters() == 4);
    CHECK_EQ(gort_close(l), 0);
    wait_until(get(&done) == 4);
    l = gort_listen(addr, 0); /* really closed: the port is free */
    CHECK_GE(l, 0);
    CHECK_EQ(gort_close(l), 0);
}

/* Waiters on a duplicate are not woken. */
static void read_dup(void *arg) {
    char b[8];
    CHECK_EQ(gort_read((int)(intptr_t)arg, b, sizeof b), 1);
    add(&done, 1);
}
static void test_dup(void) {
    CHECK_EQ(pipe(p), 0);
    int d = dup(p[0]);
    set(&done, 0);
    gort_go(read_dup, (void *)(intptr_t)d);
    wait_parked(1);
    CHECK_EQ(gort_close(p[0]), 0);
    settle();
    CHECK_EQ(get(&done), 0);
    CHECK_EQ(gort_write(p[1], "x", 1), 1);
    wait_until(get(&done));
    gort_close(d), gort_close(p[1]);
}

static void race_close(void *arg) {
    int r = gort_close(fd[0]);
    if (r != 0) {
        CHECK_EQ(r, -EBADF);
        add(&bad, 1);
    }
    add(&done, 1);
}
static void *race_close_thread(void *arg) {
    race_close(arg);
    return NULL;
}

static void test_racing_closes(void) {
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        hold_low_numbers();
        CHECK_EQ(pipe(fd), 0);
        free_low_numbers();
        set(&done, 0), set(&bad, 0);
        for (int k = 0; k < 4; k++) gort_go(race_close, NULL);
        if (i % 8 == 0) CHECK_EQ(pthread_create(&t, NULL, race_close_thread, NULL), 0);
        int all = i % 8 == 0 ? 5 : 4;
        wait_until(get(&done) == all);
        if (i % 8 == 0) pthread_join(t, NULL);
        CHECK_EQ(bad, all - 1);
        CHECK_EQ(gort_close(fd[1]), 0);
    }
}

/* Readers that are in and out of the kernel all the time while it is closed. */
static void busy_reader(void *arg) {
    char b[4];
    ssize_t r;
    while ((r = gort_read(fd[0], b, sizeof b)) > 0) {}
    CHECK_EQ(r, -EBADF);
    add(&done, 1);
}
static void busy_writer(void *arg) {
    while (gort_write(fd[1], "abcdefgh", 8) == 8) {}
    add(&done, 1);
}
static void test_busy(void) {
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        set(&done, 0);
        for (int k = 0; k < 3; k++) gort_go(busy_reader, NULL);
        gort_go(busy_writer, NULL);
        for (int k = 0; k < i % 7; k++) gort_yield();
        CHECK_EQ(gort_close(fd[0]), 0);
        wait_until(get(&done) == 4);
        CHECK_EQ(gort_close(fd[1]), 0);
    }
}

/* A socket that lingers holds up its closer, not the number. */
static void close_it(void *arg) {
    CHECK_EQ(gort_close((int)(intptr_t)arg), 0);
    add(&done, 1);
}
static void test_linger(void) {
    struct linger l = {1, 2};
    static char b[1 << 20];
    tcp_pair(fd);
    CHECK_EQ(setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    while (gort_send(fd[0], b, sizeof b, MSG_DONTWAIT) > 0) {}
    set(&done, 0);
    gort_go(close_it, (void *)(intptr_t)fd[0]);
    wait_until(fcntl(fd[0], F_GETFD) < 0); /* the number is free */
    CHECK_EQ(gort_close(fd[1]), 0);
    wait_until(get(&done));
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_wakes_all();
    test_accept();
    test_dup();
    test_racing_closes();
    test_busy();
    test_linger();
    CHECK_EQ(gort_close(-1), -EBADF);
    CHECK_EQ(gort_close(1 << 30), -EBADF);
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
