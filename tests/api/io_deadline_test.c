#define _GNU_SOURCE 1
/* Deadlines: passed ones make one attempt, later ones are kept, the descriptor goes on working. */
#include "../lib/test.h"
#include "../lib/io_net.h"

static int fd[2], p[2], done;

static void test_passed(void) {
    char b[8] = "unread";
    CHECK_EQ(pipe(p), 0);
    int64_t past[] = {0, -1, gort_now() - GORT_SEC, gort_now()};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(gort_read_until(p[0], b, sizeof b, past[i]), -ETIMEDOUT);
        CHECK_STR(b, "unread");
        CHECK_EQ(gort_write(p[1], "abc", 4), 4);
        CHECK_EQ(gort_read_until(p[0], b, sizeof b, past[i]), 4);
        CHECK_STR(b, "abc");
        strcpy(b, "unread");
    }
    CHECK_EQ(gort_pin() >= 0, 1); /* never parks: allowed while pinned */
    CHECK_EQ(gort_read_until(p[0], b, sizeof b, 0), -ETIMEDOUT);
    gort_unpin();
    gort_close(p[0]), gort_close(p[1]);
}

static void test_kept(void) {
    char b[8];
    CHECK_EQ(pipe(p), 0);
    for (int i = 0; i < 5; i++) {
        int64_t start = gort_now();
        CHECK_EQ(gort_read_until(p[0], b, sizeof b, start + 10 * GORT_MS), -ETIMEDOUT);
        CHECK_GE(gort_now() - start, 10 * GORT_MS);
        CHECK_EQ(gort_write(p[1], "x", 1), 1);
        CHECK_EQ(gort_read(p[0], b, sizeof b), 1);
    }
    CHECK_EQ(gort_read_full_until(p[0], b, 4, gort_now() + GORT_MS), -ETIMEDOUT);
    gort_close(p[0]), gort_close(p[1]);
}

/* A drained TCP socket: the read after a short one, with deadlines of every kind. */
static void test_drained(void) {
    char b[64];
    tcp_pair(fd);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_write(fd[1], "abc", 3), 3);
        CHECK_EQ(gort_read(fd[0], b, sizeof b), 3);
        CHECK_EQ(gort_read_until(fd[0], b, sizeof b, 0), -ETIMEDOUT);
        CHECK_EQ(gort_read_until(fd[0], b, sizeof b, gort_now() + 100 * GORT_US), -ETIMEDOUT);
        CHECK_EQ(gort_write(fd[1], "abcd", 4), 4);
        ssize_t n;
        wait_until((n = gort_read_until(fd[0], b, sizeof b, 0)) != -ETIMEDOUT);
        CHECK_EQ(n, 4);
    }
    gort_close(fd[0]), gort_close(fd[1]);
}

static void test_write(void) {
    static char b[1 << 20];
    ssize_t n;
    CHECK_EQ(pipe(p), 0);
    while ((n = gort_write_until(p[1], b, sizeof b, gort_now() + 5 * GORT_MS)) > 0) {}
    CHECK_EQ(n, -ETIMEDOUT);
    CHECK_EQ(gort_write_full_until(p[1], b, 10, 0), -ETIMEDOUT);
    CHECK_EQ(gort_read(p[0], b, sizeof b) > 0, 1);
    CHECK_EQ(gort_write_until(p[1], b, 10, 0), 10);
    gort_close(p[0]), gort_close(p[1]);
}

static void test_others(void) {
    char addr[64], b[8] = "1234567";
    int l = listen_loopback(addr, sizeof addr);
    struct iovec v = {b, sizeof b};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    int64_t soon = gort_now() + 3 * GORT_MS;
    CHECK_EQ(gort_accept_until(l, NULL, NULL, soon), -ETIMEDOUT);
    CHECK_EQ(gort_accept_until(l, NULL, NULL, 0), -ETIMEDOUT);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
    soon = gort_now() + 3 * GORT_MS;
    CHECK_EQ(gort_recvmsg_until(fd[0], &m, 0, soon), -ETIMEDOUT);
    CHECK_EQ(gort_recvfrom_until(fd[0], b, 8, 0, NULL, NULL, soon), -ETIMEDOUT);
    CHECK_EQ(gort_recv_until(fd[0], b, 8, 0, soon), -ETIMEDOUT);
    CHECK_EQ(gort_readv_until(fd[0], &v, 1, soon), -ETIMEDOUT);
    CHECK_EQ(gort_send_until(fd[0], b, 8, 0, soon), 8);
    CHECK_EQ(gort_sendmsg_until(fd[0], &m, 0, soon), 8);
    CHECK_EQ(gort_writev_until(fd[0], &v, 1, soon), 8);
    CHECK_EQ(gort_sendto_until(fd[0], b, 8, 0, NULL, 0, soon), 8);
    gort_close(fd[0]), gort_close(fd[1]), gort_close(l);
}

/* Deadlines against data: nothing is lost, nothing comes twice. */
#define ROUNDS 2000
static void feeder(void *arg) {
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CHECK_EQ(gort_write(p[1], &i, sizeof i), sizeof i);
        if (i % 16 == 0) gort_sleep(20 * GORT_US);
    }
    add(&done, 1);
}
static void test_race(void) {
    uint32_t v, expect = 0;
    CHECK_EQ(pipe(p), 0);
    gort_go(feeder, NULL);
    while (expect < ROUNDS) {
        ssize_t n =
            gort_read_until(p[0], &v, sizeof v, gort_now() + (int64_t)(expect % 50) * GORT_US);
        if (n == -ETIMEDOUT) continue;
        CHECK_EQ(n, sizeof v);
        CHECK_EQ(v, expect);
        expect++;
    }
    wait_until(get(&done));
    gort_close(p[0]), gort_close(p[1]);
}

static int run(int argc, char **argv) {
    test_passed();
    test_kept();
    test_drained();
    test_write();
    test_others();
    test_race();
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
