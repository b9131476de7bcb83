#define _GNU_SOURCE 1
/* Numbers closed and reused at once, 10^5 times, from several goroutines; and closed behind the
 * runtime's back. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <sys/ioctl.h>

#define WORKERS 8
#define ROUNDS (100000 / WORKERS)
static int done;

typedef struct Blocked {
    int fd, tag;
    ssize_t result;
    int over;
} Blocked;

/* Two numbers in one call: when the first has been taken out, the call is under way. */
static void reader(void *arg) {
    Blocked *b = arg;
    int v[2] = {-1, -1};
    b->result = gort_read_full(b->fd, v, sizeof v);
    CHECK_EQ(v[0], b->tag);
    if (b->result > 0) CHECK_EQ(v[1], b->tag); /* never another pair's bytes */
    set(&b->over, 1);
}

static int unread(int fd) {
    int n = 0;
    CHECK_EQ(ioctl(fd, FIONREAD, &n), 0);
    return n;
}

/* Makes a pair, lets a goroutine block on it, closes it: the reader must hear of it, whoever has
 * the number by then. */
static void worker(void *arg) {
    int k = (int)(intptr_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        int s[2], v = k * ROUNDS + i, w;
        CHECK_EQ(i % 2 ? pipe(s) : socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
        CHECK_EQ(gort_write(s[1], &v, sizeof v), sizeof v);
        CHECK_EQ(gort_read(s[0], &w, sizeof w), sizeof w);
        CHECK_EQ(w, v);
        if (i % 8 == 0) {
            Blocked b = {.fd = s[0], .tag = v};
            CHECK_EQ(gort_write(s[1], &v, sizeof v), sizeof v);
            gort_go(reader, &b);
            wait_until(unread(s[0]) == 0);
            int tell = i % 24 == 0;
            if (tell) CHECK_EQ(gort_write(s[1], &v, sizeof v), sizeof v);
            CHECK_EQ(gort_close(s[0]), 0);
            wait_until(get(&b.over));
            CHECKF(b.result == -EBADF || (tell && b.result == 2 * sizeof v), "read: %zd", b.result);
        } else {
            CHECK_EQ(gort_close(s[0]), 0);
        }
        CHECK_EQ(gort_close(s[1]), 0);
    }
    add(&done, 1);
}

static int p[2];
static void read_one(void *arg) {
    char c = 0;
    CHECK_EQ(gort_read(p[0], &c, 1), 1);
    CHECK_EQ(c, 'y');
    add(&done, 1);
}

/* Plain close while nobody waits; the number comes back as something else: what was known of it
 * must not be believed. */
static void test_behind(void) {
    for (int i = 0; i < 60; i++) {
        int q[2];
        char c;
        CHECK_EQ(i % 3 == 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, p) : pipe(p), 0);
        if (i % 4 < 2) {
            gort_read_until(p[0], &c, 1, gort_now() + 50 * GORT_US); /* registers it */
            CHECK_EQ(gort_write(p[1], "x", 1), 1);
            CHECK_EQ(gort_read(p[0], &c, 1), 1);
        }
        CHECK_EQ(close(p[0]), 0); /* behind the runtime's back */
        CHECK_EQ(close(p[1]), 0);
        CHECK_EQ(i % 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, q) : pipe(q), 0);
        p[0] = q[0], p[1] = q[1];
        set(&done, 0);
        gort_go(read_one, NULL);
        if (i % 5) wait_parked(1);
        CHECK_EQ(gort_write(p[1], "y", 1), 1);
        wait_until(get(&done));
        gort_close(p[0]), gort_close(p[1]);
    }
}

/* dup2 over a known number, and a number that turns into a file. */
static void test_dup2(void) {
    char c = 0;
    int q[2], f;
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_read_until(p[0], &c, 1, gort_now() + 50 * GORT_US), -ETIMEDOUT);
    CHECK_EQ(pipe(q), 0);
    CHECK_EQ(dup2(q[0], p[0]), p[0]);
    set(&done, 0);
    gort_go(read_one, NULL);
    wait_parked(1);
    CHECK_EQ(gort_write(q[1], "y", 1), 1);
    wait_until(get(&done));
    f = gort_open("/proc/self/exe", O_RDONLY, 0);
    CHECK_GE(f, 0);
    CHECK_EQ(dup2(f, p[0]), p[0]);
    CHECK_EQ(gort_read(p[0], &c, 1), 1);
    CHECK_EQ(c, 0x7f);
    CHECK_EQ(dup2(q[0], f), f);
    CHECK_EQ(gort_read_until(f, &c, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(q[1], "z", 1), 1);
    CHECK_EQ(gort_read(f, &c, 1), 1);
    gort_close(f), gort_close(q[0]), gort_close(q[1]), gort_close(p[0]), gort_close(p[1]);
}

/* A TCP connection closed behind our back right after a short read: the next owner of the number
 * inherits "drained" and a registration that is gone. */
static void test_drained(void) {
    for (int i = 0; i < 20; i++) {
        int s[2];
        char b[64];
        tcp_pair(s);
        CHECK_EQ(gort_read_until(s[0], b, sizeof b, gort_now() + 50 * GORT_US), -ETIMEDOUT);
        CHECK_EQ(gort_write(s[1], "abc", 3), 3);
        CHECK_EQ(gort_read(s[0], b, sizeof b), 3);
        CHECK_EQ(pipe(p), 0);
        CHECK_EQ(dup2(p[0], s[0]), s[0]);
        CHECK_EQ(close(p[0]), 0);
        p[0] = s[0];
        set(&done, 0);
        gort_go(read_one, NULL);
        if (i % 2) wait_parked(1);
        CHECK_EQ(gort_write(p[1], "y", 1), 1);
        wait_until(get(&done));
        gort_close(p[0]), gort_close(p[1]), gort_close(s[1]);
    }
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_behind();
    test_dup2();
    test_drained();
    set(&done, 0);
    for (intptr_t i = 0; i < WORKERS; i++) gort_go(worker, (void *)i);
    wait_until(get(&done) == WORKERS);
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
