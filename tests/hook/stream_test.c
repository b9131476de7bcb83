/* read, write, readv, writev: a goroutine waits and no thread does; nothing changes for the
 * caller. */
#include "hook.h"
#include <sys/signalfd.h>

static int ends[MANY][2];
static int got;

static void reader(void *arg) {
    int *end = arg, value = -1;
    CHECK_EQ(read(end[0], &value, sizeof value), sizeof value);
    CHECK_EQ(value, (int)((int(*)[2])end - ends));
    add(&got, 1);
}

static void many_readers(void) {
    set(&got, 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(i % 2 ? pipe(ends[i]) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        CHECK_EQ(gort_go(reader, ends[i]), 0);
    }
    wait_for_waiting("IO wait", MANY);
    CHECK_LT(threads(), 40);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(fcntl(ends[i][0], F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQ(write(ends[i][1], &i, sizeof i), sizeof i);
    }
    wait_until(get(&got) == MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(close(ends[i][0]), 0);
        CHECK_EQ(close(ends[i][1]), 0);
    }
}

#define BIG ((size_t)1 << 20)
static char big[BIG], back[BIG];

static void big_reader(void *arg) {
    int *end = arg;
    size_t n = 0;
    while (n < BIG) {
        ssize_t r = read(end[0], back + n, BIG - n);
        CHECK_GT(r, 0);
        n += (size_t)r;
    }
    add(&got, 1);
}

/* A blocking write moves everything. */
static void big_write(int pair[2], bool vector) {
    memset(back, 0, BIG);
    set(&got, 0);
    gort_go(big_reader, pair);
    struct iovec iov[3] = {
        {big, 10}, {big + 10, BIG / 2}, {big + 10 + BIG / 2, BIG - 10 - BIG / 2}};
    CHECK_EQ(vector ? writev(pair[1], iov, 3) : write(pair[1], big, BIG), BIG);
    wait_until(get(&got) == 1);
    CHECK(memcmp(big, back, BIG) == 0);
}

static void big_writes(void) {
    for (size_t i = 0; i < BIG; i++) big[i] = (char)(i * 31 + i / 257);
    for (int i = 0; i < 4; i++) {
        int pair[2];
        CHECK_EQ(i % 2 ? pipe(pair) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        big_write(pair, i >= 2);
        close(pair[0]);
        close(pair[1]);
    }
}

/* What the caller made non-blocking is. */
static void nonblocking(int pair[2]) {
    char b[4];
    struct iovec iov = {b, 4};
    CHECK_EQ(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    CHECK_FAILS(read(pair[0], b, 4), EAGAIN);
    CHECK_FAILS(readv(pair[0], &iov, 1), EAGAIN);
    CHECK(fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    ssize_t r;
    while ((r = write(pair[1], big, BIG)) > 0) {}
    CHECK_EQ(r, -1);
    CHECK_EQ(errno, EAGAIN);
    iov = (struct iovec){big, BIG};
    CHECK_FAILS(writev(pair[1], &iov, 1), EAGAIN);
    close(pair[0]);
    CHECK_FAILS(write(pair[1], b, 1), EPIPE);
    close(pair[1]);
}

static void vectors_and_ends(void) {
    int p[2];
    char a[3] = "", b[4] = "";
    struct iovec out[2] = {{"he", 2}, {"llo", 3}}, in[2] = {{a, 2}, {b, 3}};
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(writev(p[1], out, 2), 5);
    CHECK_EQ(readv(p[0], in, 2), 5);
    CHECK_STR(a, "he");
    CHECK_STR(b, "llo");
    CHECK_EQ(read(p[0], a, 0), 0);
    close(p[1]);
    CHECK_EQ(read(p[0], a, 1), 0);
    close(p[0]);
    CHECK_FAILS(read(p[0], a, 1), EBADF);
    CHECK_FAILS(write(p[0], a, 1), EBADF);
}

static void closed_under(void *arg) {
    char c;
    CHECK_FAILS(read(*(int *)arg, &c, 1), EBADF);
    add(&got, 1);
}

static void close_wakes(void) {
    int p[2];
    CHECK_EQ(pipe(p), 0);
    set(&got, 0);
    gort_go(closed_under, &p[0]);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(close(p[0]), 0);
    wait_until(get(&got) == 1);
    close(p[1]);
}

/* A signal to the thread of a goroutine that reads a signalfd: another thread's poll, where some
 * other goroutine keeps the runtime busy, says nothing of it. */
static pthread_t home;
static int wakes, sleepers;

static void signal_reader(void *arg) {
    struct signalfd_siginfo info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    home = pthread_self();
    CHECK_EQ(read(*(int *)arg, &info, sizeof info), (long)sizeof info);
    CHECK_EQ(info.ssi_signo, SIGUSR1);
    add(&wakes, 1);
}
static void keeps_busy(void *arg) {
    while (!get(&wakes)) usleep(50);
    add(&sleepers, 1);
}
static void *sender(void *arg) {
    CHECK_EQ(pthread_kill(home, SIGUSR1), 0);
    return NULL;
}

static void signals(void) {
    pthread_t thread;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    int fd = signalfd(-1, &set, 0);
    CHECK_EQ(gort_go(signal_reader, &fd), 0);
    wait_for_waiting("IO wait", 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(keeps_busy, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, sender, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    wait_until(get(&wakes) && get(&sleepers) == 4);
    close(fd);
}

static int run(int argc, char **argv) {
    many_readers();
    big_writes();
    for (int i = 0; i < 2; i++) {
        int pair[2];
        CHECK_EQ(i % 2 ? pipe(pair) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        nonblocking(pair);
    }
    vectors_and_ends();
    close_wakes();
    signals();
    return 0;
}
HOOK_MAIN(run)
