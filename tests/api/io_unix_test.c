#define _GNU_SOURCE 1
/* Unix sockets: passed descriptors, a full backlog, a full datagram queue, stale files. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <sys/stat.h>

static char path[80], addr[90];
static int done;

static void send_fd(int s, int fd) {
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec v = {(void *)"f", 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    CHECK_EQ(gort_sendmsg(s, &m, 0), 1);
}

static int recv_fd(int s) {
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char b[10];
    int fd;
    struct iovec v = {b, sizeof b};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CHECK_EQ(gort_recvmsg(s, &m, MSG_CMSG_CLOEXEC), 1);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    CHECK(c && c->cmsg_type == SCM_RIGHTS);
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static void passer(void *arg) {
    int s = (int)(intptr_t)arg, p[2];
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pipe(p), 0);
        CHECK_EQ(gort_write(p[1], &i, sizeof i), sizeof i);
        CHECK_EQ(gort_close(p[1]), 0);
        send_fd(s, p[0]);
        CHECK_EQ(gort_close(p[0]), 0);
    }
    add(&done, 1);
}

static void test_passing(void) {
    int s[2], v;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    gort_go(passer, (void *)(intptr_t)s[1]);
    for (int i = 0; i < 20; i++) {
        int fd = recv_fd(s[0]);
        CHECK_EQ(gort_read_full(fd, &v, sizeof v), sizeof v);
        CHECK_EQ(v, i);
        CHECK_EQ(gort_read(fd, &v, sizeof v), 0);
        CHECK_EQ(gort_close(fd), 0);
    }
    wait_until(get(&done));
    gort_close(s[0]), gort_close(s[1]);
}

/* Ten bytes, with a descriptor or without. */
static void send_ten(int s, bool with) {
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.h = {.cmsg_level = SOL_SOCKET,
                       .cmsg_type = SCM_RIGHTS,
                       .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct iovec v = {(void *)"0123456789", 10};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    memcpy(CMSG_DATA(&control.h), &s, sizeof s);
    if (with) m.msg_control = &control, m.msg_controllen = sizeof control;
    CHECK_EQ(sendmsg(s, &m, 0), 10);
}

typedef struct Got {
    ssize_t n;
    int flags, fds, types;
    pid_t pid; /* of the credentials */
} Got;

#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif
#define ROOM_ALL \
    (CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int)))

/* n bytes in three pieces; so much room for control data. */
static Got recv_pieces(int s, size_t n, int flags, size_t room, bool libc) {
    union {
        struct cmsghdr h;
        char room[ROOM_ALL];
    } control;
    char b[100];
    int fd;
    struct iovec v[3] = {{b, 3}, {b + 3, 4}, {b + 7, n - 7}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
    if (room) m.msg_control = &control, m.msg_controllen = room;
    Got g = {.n = libc ? recvmsg(s, &m, flags) : gort_recvmsg(s, &m, flags)};
    g.flags = m.msg_flags;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        g.types |= 1 << c->cmsg_type;
        if (c->cmsg_type == SCM_CREDENTIALS) memcpy(&g.pid, CMSG_DATA(c), sizeof g.pid);
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        if (c->cmsg_type == SCM_RIGHTS) g.fds++;
        if (c->cmsg_type == SCM_RIGHTS || c->cmsg_type == SCM_PIDFD) close(fd);
    }
    for (ssize_t i = 0; i < g.n; i++) CHECK_EQ(b[i], '0' + i % 10);
    return g;
}

static ssize_t recv_bytes(int s, size_t n, int flags, bool libc) {
    char b[100];
    return libc ? recv(s, b, n, flags) : gort_recv(s, b, n, flags);
}

/* What else comes with the bytes. */
enum { WITH_CRED = 1, WITH_PIDFD = 2 };

/* A socket with these messages (d: with a descriptor), and then the end. */
static int full_of(const char *messages, int with, int *other) {
    int s[2], on = 1;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    if (with & WITH_CRED) setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    if (with & WITH_PIDFD) setsockopt(s[0], SOL_SOCKET, 76 /* SO_PASSPIDFD */, &on, sizeof on);
    for (; *messages; messages++) send_ten(s[1], *messages == 'd');
    *other = s[1];
    return s[0];
}

static void same_waitall(const char *messages, size_t n, int with, int how) {
    static const size_t rooms[] = {0, CMSG_SPACE(sizeof(int)), ROOM_ALL};
    int flags = MSG_WAITALL | (how & 1 ? MSG_PEEK : 0);
    int o, p, a = full_of(messages, with, &o), b = full_of(messages, with, &p);
    if (!(how & 1)) shutdown(o, SHUT_WR), shutdown(p, SHUT_WR);
    if (how < 2) {
        CHECK_EQ(recv_bytes(a, n, flags, true), recv_bytes(b, n, flags, false));
    } else {
        Got x = recv_pieces(a, n, flags, rooms[how / 2 - 1], true);
        Got y = recv_pieces(b, n, flags, rooms[how / 2 - 1], false);
        CHECK_EQ(x.n, y.n);
        CHECK_EQ(x.flags, y.flags);
        CHECK_EQ(x.fds, y.fds);
        CHECK_EQ(x.types, y.types);
        CHECK_EQ(x.pid, y.pid);
    }
    close(a), gort_close(b), close(o), close(p);
}

/* MSG_WAITALL stops where the kernel's does, and a peek does not wait for more. Where credentials
 * were asked for and have no room, a part may be all: whether a descriptor was lost is not told. */
static void test_waitall_passed(void) {
    static const char *const messages[] = {".", "d", "d.", ".d", ".d.", "dd", "...", "..d."};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        for (size_t n = 8; n < 50; n += 7)
            for (int with = 0; with < 4; with++)
                for (int how = 0; how < 8; how++)
                    if (with == 0 || how / 2 != 2) same_waitall(messages[i], n, with, how);
}

static gort_wg sender;
static void send_later(void *arg) {
    int s = (int)(intptr_t)arg;
    wait_parked(1);
    send_ten(s, false);
    wait_parked(1);
    send_ten(s, true);
}

/* The descriptor comes with bytes for which the call has waited. */
static void test_waitall_late(int with) {
    int o, s = full_of(".", with, &o);
    gort_wg_go(&sender, send_later, (void *)(intptr_t)o);
    Got g = recv_pieces(s, 50, MSG_WAITALL, ROOM_ALL, false);
    CHECK_EQ(g.n, 30);
    CHECK_EQ(g.fds, 1);
    CHECK_EQ(g.flags, 0);
    gort_wg_wait(&sender); /* what arrives is no order that TSan knows */
    gort_close(s), close(o);
}

static void dialler(void *arg) {
    dial_until_closed(addr);
    add(&done, 1);
}

/* A full backlog: connect waits, with a deadline not for ever. */
static void test_backlog(void) {
    int l = gort_listen(addr, 1);
    CHECK_GE(l, 0);
    set(&done, 0);
    for (int i = 0; i < 10; i++) gort_go(dialler, NULL);
    wait_parked(10); /* those connected, and those that find it full */
    CHECK_EQ(gort_dial(addr, gort_now() + 10 * GORT_MS), -ETIMEDOUT);
    for (int i = 0; i < 10; i++) {
        int fd = gort_accept(l, NULL, NULL);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_close(fd), 0);
    }
    wait_until(get(&done) == 10);
    CHECK_EQ(gort_close(l), 0);
}

static void test_files(void) {
    char text[100];
    struct stat st;
    int l = gort_listen(addr, 0);
    CHECK_GE(l, 0); /* the file of the test before is stale */
    CHECK_EQ(gort_local_addr(l, text, sizeof text), 0);
    CHECK_STR(text, addr);
    CHECK_EQ(gort_local_addr(l, text, strlen(addr)), -ENOSPC);
    int c = gort_dial(addr, GORT_FOREVER);
    CHECK_EQ(gort_local_addr(c, text, sizeof text), 0);
    CHECK_STR(text, "unix:"); /* it has no address */
    CHECK_EQ(gort_close(c), 0);
    CHECK_EQ(gort_listen(addr, 0), -EADDRINUSE);
    CHECK_EQ(gort_close(l), 0);
    CHECK_EQ(gort_dial(addr, GORT_FOREVER), -ECONNREFUSED);
    unlink(path);
    CHECK_EQ(gort_dial(addr, GORT_FOREVER), -ENOENT);
    int f = gort_open(path, O_CREAT | O_WRONLY, 0600);
    CHECK_GE(f, 0);
    CHECK_EQ(gort_close(f), 0);
    CHECK_EQ(gort_listen(addr, 0), -EADDRINUSE);
    CHECK_EQ(stat(path, &st), 0);
    CHECK(S_ISREG(st.st_mode));
    unlink(path);
}

static void slow_receiver(void *arg) {
    char b[10];
    for (int i = 0; i < 3000; i++) {
        CHECK_EQ(gort_recv((int)(intptr_t)arg, b, sizeof b, 0), 3);
        if (i % 500 == 0) gort_sleep(GORT_MS);
    }
    add(&done, 1);
}

/* Datagrams to an unconnected peer whose queue is full: no edge tells when it is not. */
static void test_datagrams(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int r = socket(AF_UNIX, SOCK_DGRAM, 0), s = socket(AF_UNIX, SOCK_DGRAM, 0);
    strcpy(to.sun_path, path);
    CHECK_EQ(bind(r, (void *)&to, sizeof to), 0);
    set(&done, 0);
    gort_go(slow_receiver, (void *)(intptr_t)r);
    for (int i = 0; i < 3000; i++) CHECK_EQ(gort_sendto(s, "abc", 3, 0, (void *)&to, sizeof to), 3);
    wait_until(get(&done));
    while (gort_sendto(s, "abc", 3, MSG_DONTWAIT, (void *)&to, sizeof to) == 3) {}
    CHECK_EQ(gort_sendto_until(s, "abc", 3, 0, (void *)&to, sizeof to, gort_now() + 5 * GORT_MS),
             -ETIMEDOUT);
    gort_close(r), gort_close(s);
    unlink(path);
}

static int run(int argc, char **argv) {
    snprintf(path, sizeof path, "/tmp/gort_unix_%d", (int)getpid());
    snprintf(addr, sizeof addr, "unix:%s", path);
    int before = count_fds();
    test_passing();
    test_waitall_passed();
    for (int with = 0; with < 4; with++) test_waitall_late(with);
    test_backlog();
    test_files();
    test_datagrams();
    snprintf(addr, sizeof addr, "unix:@gort_unix_%d", (int)getpid());
    test_backlog();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
