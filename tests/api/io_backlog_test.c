#define _GNU_SOURCE 1
// not-with: emulation (qemu looks at pointers and TCP_INFO in its own way)
/* A TCP listener whose queue is full: connecting waits, a deadline ends it, gort_close ends it, and
 * room in the queue ends it well. And what a close or a deadline leaves of calls that want all of
 * their bytes. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#define MOST 16
static struct sockaddr_in where;

static int fresh(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    return fd;
}

/* How many wait to be accepted, and how many may: the kernel takes one more than that. */
static int queued(int l, int *most) {
    struct tcp_info info;
    socklen_t len = sizeof info;
    CHECK_EQ(getsockopt(l, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    *most = (int)info.tcpi_sacked;
    return (int)info.tcpi_unacked;
}

/* Connects until the queue is full; how many are in it. */
static int fill(int l, int *fds) {
    int most = 0, n = 0;
    while (queued(l, &most) <= most) {
        CHECK_LT(n, MOST);
        fds[n] = fresh();
        CHECK_EQ(gort_connect(fds[n], (void *)&where, sizeof where), 0);
        n++;
        wait_until(queued(l, &most) == n);
    }
    return n;
}

typedef struct Connecting {
    int fd, result, ended;
} Connecting;

static void connects(void *arg) {
    Connecting *c = arg;
    c->result = gort_connect(c->fd, (void *)&where, sizeof where);
    set(&c->ended, 1);
}

static void test_backlog(void) {
    socklen_t len = sizeof where;
    int l = fresh(), fds[MOST];
    where = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(l, (void *)&where, sizeof where) == 0 && listen(l, 1) == 0);
    CHECK_EQ(getsockname(l, (void *)&where, &len), 0);
    int n = fill(l, fds), late = fresh();
    CHECK_GE(n, 1);
    CHECK_EQ(gort_connect_until(late, (void *)&where, sizeof where, gort_now() + 20 * GORT_MS),
             -ETIMEDOUT);
    CHECK_EQ(gort_close(late), 0); /* all that it is good for now */
    static Connecting closed, waits;
    closed = (Connecting){.fd = fresh()};
    waits = (Connecting){.fd = fresh()};
    CHECK_EQ(gort_go(connects, &closed), 0);
    CHECK_EQ(gort_go(connects, &waits), 0);
    wait_until(count_io_waiters() == 2);
    CHECK_EQ(get(&closed.ended) + get(&waits.ended), 0);
    CHECK_EQ(gort_close(closed.fd), 0);
    wait_until(get(&closed.ended));
    CHECK_EQ(closed.result, -EBADF);
    for (int i = 0; i < n; i++) { /* room: the kernel tries again after a second */
        int fd = gort_accept(l, NULL, NULL);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_close(fd), 0);
        CHECK_EQ(gort_close(fds[i]), 0);
    }
    wait_until(get(&waits.ended));
    CHECK_EQ(waits.result, 0);
    CHECK_EQ(gort_close(waits.fd), 0);
    CHECK_EQ(gort_close(l), 0);
}

/* ---- all bytes ------------------------------------------------------------------------------- */

typedef struct Whole {
    int fd;
    ssize_t result;
    int ended;
} Whole;
static char room[1 << 20];

static void recv_all(void *arg) {
    Whole *w = arg;
    w->result = gort_recv(w->fd, room, 100, MSG_WAITALL);
    set(&w->ended, 1);
}
static void read_all(void *arg) {
    Whole *w = arg;
    w->result = gort_read_full(w->fd, room, 100);
    set(&w->ended, 1);
}
static void write_all(void *arg) {
    Whole *w = arg;
    while ((w->result = gort_write_full(w->fd, room, sizeof room)) > 0) {}
    set(&w->ended, 1);
}
static void recvmsg_all(void *arg) {
    Whole *w = arg;
    struct iovec v[2] = {{room, 10}, {room + 10, 90}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    w->result = gort_recvmsg(w->fd, &m, MSG_WAITALL);
    set(&w->ended, 1);
}

/* 30 of 100 bytes are there, then it is closed under the caller. */
static void closed_under(gort_fn *fn, ssize_t expected) {
    static Whole w;
    int fd[2];
    tcp_pair(fd);
    w = (Whole){.fd = fd[0]};
    CHECK_EQ(gort_write_full(fd[1], "012345678901234567890123456789", 30), 30);
    CHECK_EQ(gort_go(fn, &w), 0);
    wait_until(count_io_waiters() == 1);
    if (fn != write_all) { /* it waits for more only once it has taken these */
        int left = 1;
        while (left > 0) {
            left = (int)recv(fd[0], &(char[64]){0}, 64, MSG_PEEK | MSG_DONTWAIT);
            gort_yield();
        }
    }
    CHECK_EQ(gort_close(fd[0]), 0);
    wait_until(get(&w.ended));
    CHECK_EQ(w.result, expected);
    CHECK_EQ(gort_close(fd[1]), 0);
}

static void test_deadlines(void) {
    int fd[2];
    tcp_pair(fd);
    CHECK_EQ(gort_write_full(fd[1], "0123456789", 10), 10);
    CHECK_EQ(gort_recv_until(fd[0], room, 100, MSG_WAITALL, gort_now() + 30 * GORT_MS), 10);
    CHECK_EQ(gort_recv_until(fd[0], room, 100, MSG_WAITALL, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_read_full_until(fd[0], room, 100, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write_full(fd[1], "0123456789", 10), 10);
    CHECK_EQ(shutdown(fd[1], SHUT_WR), 0);
    CHECK_EQ(gort_recv(fd[0], room, 100, MSG_WAITALL), 10); /* the end: what there is */
    CHECK_EQ(gort_recv(fd[0], room, 100, MSG_WAITALL), 0);
    CHECK_EQ(gort_read_full(fd[0], room, 1), -ENODATA);
    CHECK_EQ(gort_read_full(fd[0], room, 0), 0);
    CHECK_EQ(gort_close(fd[0]), 0);
    CHECK_EQ(gort_close(fd[1]), 0);
}

/* The connection is reset while a call waits for the rest: what there is, and then the error. */
static gort_wg resetter;
static void resets(void *arg) {
    int *fd = arg;
    char c;
    while (recv(fd[0], &c, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
        gort_yield(); /* the others wait for more */
    struct linger at_once = {1, 0};
    CHECK_EQ(setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(gort_close(fd[1]), 0);
}
static void test_reset(bool message) {
    int fd[2];
    struct iovec iov = {room, 100};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    tcp_pair(fd);
    CHECK_EQ(gort_write_full(fd[1], "abc", 3), 3);
    CHECK_EQ(gort_wg_go(&resetter, resets, fd), 0);
    if (message) CHECK_EQ(gort_recvmsg(fd[0], &m, MSG_WAITALL), 3);
    else CHECK_EQ(gort_recv(fd[0], room, 100, MSG_WAITALL), 3);
    CHECK_EQ(gort_recv(fd[0], room, 100, 0), -ECONNRESET);
    gort_wg_wait(&resetter); /* it has used fd[0]; a reset is no order that TSan knows */
    CHECK_EQ(gort_close(fd[0]), 0);
}

/* A socket that is full, and stays so: TCP would take more as soon as the kernel has moved what it
 * has. */
static void test_full(void) {
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    /* one attempt each: short, then none */
    while (gort_write_until(fd[0], room, sizeof room, 0) > 0) {}
    CHECK_EQ(gort_write_until(fd[0], room, sizeof room, 0), -ETIMEDOUT);
    CHECK_EQ(gort_write_full_until(fd[0], room, sizeof room, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_send(fd[0], room, sizeof room, MSG_DONTWAIT), -EAGAIN);
    CHECK_EQ(gort_send_until(fd[0], room, sizeof room, MSG_DONTWAIT, gort_now() + 100 * GORT_SEC),
             -EAGAIN);
    CHECK_EQ(gort_close(fd[0]), 0);
    CHECK_EQ(gort_close(fd[1]), 0);
}

static int run(int argc, char **argv) {
    test_backlog();
    closed_under(recv_all, 30);
    closed_under(recvmsg_all, 30);
    closed_under(read_all, -EBADF);
    closed_under(write_all, -EBADF);
    test_deadlines();
    test_reset(false);
    test_reset(true);
    test_full();
    wait_until(gort_count() == 1);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
