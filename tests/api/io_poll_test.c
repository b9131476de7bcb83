#define _GNU_SOURCE 1
/* gort_poll: poll(2) for goroutines. */
#include "../lib/test.h"
#include "../lib/io_net.h"

static int p[2], q[2], done;

static void test_now(void) {
    struct pollfd f[3] = {
        {.fd = p[0], .events = POLLIN}, {.fd = p[1], .events = POLLOUT}, {.fd = -1}};
    CHECK_EQ(gort_poll(f, 1, 0), 0);
    CHECK_EQ(gort_poll(f, 3, 0), 1);
    CHECK_EQ(f[0].revents, 0);
    CHECK_EQ(f[1].revents, POLLOUT);
    CHECK_EQ(f[2].revents, 0);
    f[2].fd = 19998; /* not open */
    CHECK_EQ(gort_poll(&f[2], 1, -1), 1);
    CHECK_EQ(f[2].revents, POLLNVAL);
    int64_t start = gort_now();
    CHECK_EQ(gort_poll(f, 1, 5), 0);
    CHECK_GE(gort_now() - start, 5 * GORT_MS);
    CHECK_EQ(gort_poll(NULL, 0, 1), 0);
    CHECK_EQ(gort_poll(NULL, 3, 0), -EFAULT);
    CHECK_EQ(gort_poll(NULL, 100, -1), -EFAULT);
}

static void writer(void *arg) {
    wait_parked(1);
    CHECK_EQ(gort_write((int)(intptr_t)arg, "x", 1), 1);
}

static void test_waits(void) {
    char b;
    for (int i = 0; i < 50; i++) {
        int *w = i % 2 ? p : q;
        struct pollfd f[2] = {{.fd = p[0], .events = POLLIN},
                              {.fd = q[0], .events = POLLIN | POLLPRI}};
        gort_go(writer, (void *)(intptr_t)w[1]);
        CHECK_EQ(gort_poll(f, 2, i % 3 ? -1 : 100000), 1);
        CHECK_EQ(f[0].revents, i % 2 ? POLLIN : 0);
        CHECK_EQ(f[1].revents, i % 2 ? 0 : POLLIN);
        CHECK_EQ(gort_read(w[0], &b, 1), 1);
    }
}

/* A poll takes nothing away: a reader behind it is served by the same edge. */
static void poller(void *arg) {
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    CHECK_EQ(gort_poll(&f, 1, -1), 1);
    add(&done, 1);
}
static void reader(void *arg) {
    char b;
    CHECK_EQ(gort_read(p[0], &b, 1), 1);
    add(&done, 1);
}
static void test_beside_reader(void) {
    set(&done, 0);
    for (int i = 0; i < 3; i++) gort_go(poller, NULL);
    wait_parked(3);
    CHECK_EQ(gort_write(p[1], "a", 1), 1);
    wait_until(get(&done) == 3);
    gort_go(reader, NULL);
    wait_until(get(&done) == 4);
    for (int i = 0; i < 3; i++) gort_go(reader, NULL), gort_go(poller, NULL);
    wait_parked(6);
    CHECK_EQ(gort_write(p[1], "abcdef", 6), 6);
    for (int i = 0; i < 100 && get(&done) < 10; i++) settle();
    wait_until(get(&done) == 10);
    char b[8];
    CHECK_EQ(gort_read(p[0], b, 8), 3);
}

/* Many descriptors, hits before it has parked: nothing is lost. */
#define MANY 40
static int many[MANY][2];
static void hitter(void *arg) {
    for (int i = 0; i < 300; i++) {
        CHECK_EQ(gort_write(many[(i * 7) % MANY][1], "x", 1), 1);
        if (i % 3 == 0) gort_yield();
    }
}
static void test_many(void) {
    struct pollfd f[MANY];
    int got = 0;
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(pipe(many[i]), 0);
        f[i] = (struct pollfd){.fd = many[i][0], .events = POLLIN};
    }
    gort_go(hitter, NULL);
    while (got < 300) {
        int n = gort_poll(f, MANY, -1);
        CHECK_GT(n, 0);
        for (int i = 0; i < MANY; i++) {
            char b[400];
            if (!(f[i].revents & POLLIN)) continue;
            ssize_t k = gort_read(f[i].fd, b, sizeof b);
            CHECK_GT(k, 0);
            got += (int)k;
        }
    }
    CHECK_EQ(got, 300);
    for (int i = 0; i < MANY; i++) gort_close(many[i][0]), gort_close(many[i][1]);
}

static void test_until(void) {
    struct pollfd f = {.fd = q[0], .events = POLLIN, .revents = 77};
    CHECK_EQ(gort_poll_until(&f, 1, 0), -ETIMEDOUT);
    CHECK_EQ(f.revents, 0);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    CHECK_EQ(gort_poll_until(&f, 1, deadline), -ETIMEDOUT);
    CHECK_GE(gort_now(), deadline);
    CHECK_EQ(gort_poll_until(NULL, 0, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(q[1], "x", 1), 1);
    CHECK_EQ(gort_poll_until(&f, 1, 0), 1); /* one attempt */
    CHECK_EQ(gort_poll_until(&f, 1, GORT_FOREVER), 1);
    CHECK_EQ(f.revents, POLLIN);
}

/* A deadline may end the wait before the thread that parked the goroutine has come to its end. */
#define LATE 16
__attribute__((noinline)) static void scribble(void) {
    volatile char b[1024];
    for (unsigned i = 0; i < sizeof b; i++) b[i] = 3;
}
static void late(void *arg) {
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    for (int i = 0; i < 10000; i++) {
        CHECK_EQ(gort_poll_until(&f, 1, gort_now() + i % 64 * (GORT_US / 4)), -ETIMEDOUT);
        scribble();
    }
    add(&done, 1);
}
static void test_late(void) {
    set(&done, 0);
    for (int i = 0; i < LATE; i++) gort_go(late, NULL);
    wait_until(get(&done) == LATE);
}

static void test_hup(void) {
    struct pollfd f = {.fd = p[0], .events = 0};
    CHECK_EQ(gort_close(p[1]), 0);
    CHECK_EQ(gort_poll(&f, 1, -1), 1);
    CHECK_EQ(f.revents, POLLHUP);
    gort_close(p[0]), gort_close(q[0]), gort_close(q[1]);
}

/* What is there and was not asked for does not keep a waiting poll busy: neither an unread byte nor
 * the end of the input behind it. The poll still sees what was asked for. */
static gort_wg ender;
static void ends_input(void *arg) {
    wait_parked(1);
    CHECK_EQ(shutdown((int)(intptr_t)arg, SHUT_RDWR), 0);
}
static void test_not_asked_for(void) {
    short asked[] = {POLLRDHUP, POLLPRI, 0, POLLPRI, 0};
    for (int i = 0; i < 5; i++) {
        int s[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
        CHECK_EQ(gort_write(s[1], "x", 1), 1);
        if (i >= 3) CHECK_EQ(shutdown(s[1], SHUT_WR), 0);
        struct pollfd f = {.fd = s[0], .events = asked[i]};
        gort_stats before, after;
        gort_stats_read(&before);
        CHECK_EQ(gort_poll(&f, 1, 200), 0);
        gort_stats_read(&after);
        CHECK_LT(after.netpoll_wakeups - before.netpoll_wakeups, 1000);
        gort_wg_go(&ender, ends_input, (void *)(intptr_t)s[1]);
        CHECK_EQ(gort_poll(&f, 1, -1), 1);
        gort_wg_wait(&ender); /* a shutdown is no order that TSan knows */
        CHECK_EQ(f.revents, POLLHUP | (asked[i] & POLLRDHUP));
        gort_close(s[0]), gort_close(s[1]);
    }
}

static int run(int argc, char **argv) {
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(pipe(q), 0);
    test_now();
    test_waits();
    test_beside_reader();
    test_many();
    test_until();
    test_late();
    test_hup();
    test_not_asked_for();
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
