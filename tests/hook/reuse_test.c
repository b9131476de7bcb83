/*
 * Numbers that change hands under a call that waits. A searcher: scenes drawn by seed, each of
 *
 *   a call      every hooked one that waits on a descriptor, and every gort_ one
 *   on          a pipe, a FIFO, sockets of several sorts, a terminal, an eventfd, on which it has
 *               to wait; warm, after hundreds of calls that had nothing to wait for, or with bytes
 *               and room that others took (src/hook/optimistic.c)
 *   a closer    close, dup2, dup3, fclose, freopen, close_range, closefrom, gort_close; on a
 *               goroutine, on a plain thread, inside gort_blocking, pinned, in a signal handler;
 *               once the caller waits, or as soon as it has moved a byte
 *   a stranger  a file of any kind that gets the number at once, with something to be read, and
 *               room
 *
 * Then the old file, which a second number may keep open, is made ready too. The call has to
 * return, and the stranger must be as it was: nothing read, nothing written, no connection made or
 * taken, no event consumed, its flags the same.
 *
 * (Left out: ppoll and pselect with a signal mask. They are the kernel's own, on a thread, and
 * poll(2) looks the number up anew whenever it is woken.)
 *
 * REUSE_SEED=n begins there, REUSE_SCENES=n of them; REUSE_ALL=1 goes on after a finding, and lists
 * them.
 */
#include "hook.h"
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

#define LONG ((size_t)1 << 20)
#define HIGH 300   /* what is not at stake: from here on, */
#define NUMBER 600 /* and what is, above all others */
#define SOME "stranger"

static uint64_t rng;
static char text[512];
static int findings;
static uint32_t pick(uint32_t n) { return (uint32_t)(test_random(&rng) >> 33) % n; }

/* System calls that the hook does not see. */
static int raw(long r) { return (int)r; }
#define RAW(name, ...) raw(syscall(SYS_##name, __VA_ARGS__))
static int raw_flags(int fd) { return RAW(fcntl, fd, F_GETFL, 0); }
static void raw_nonblock(int fd, int on) {
    int flags = raw_flags(fd);
    RAW(fcntl, fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
static void raw_close(int *fd) {
    if (*fd >= 0) RAW(close, *fd);
    *fd = -1;
}
/* The file of *fd under a number from `least` on. */
static void raw_move(int *fd, int least) {
    int to = RAW(fcntl, *fd, F_DUPFD_CLOEXEC, least);
    CHECK_GE(to, least);
    RAW(close, *fd);
    *fd = to;
}
static int unread(int fd) {
    int n = -1;
    ioctl(fd, FIONREAD, &n);
    return n;
}
static void raw_fill(int fd) {
    static char zeros[65536];
    raw_nonblock(fd, 1);
    while (syscall(SYS_write, fd, zeros, sizeof zeros) > 0) {}
    while (syscall(SYS_write, fd, zeros, 1) > 0) {}
    raw_nonblock(fd, 0);
}
static void raw_drain(int fd) {
    static char rest[65536];
    raw_nonblock(fd, 1);
    while (syscall(SYS_read, fd, rest, sizeof rest) > 0) {}
}

/* ---- what is waited on ----------------------------------------------------------------------- */

static struct sockaddr_un unix_name(const char *what, int serial, socklen_t *len) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    *len = (socklen_t)(sizeof(sa_family_t) + 1 +
                       (size_t)snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "gort-%s-%d-%d",
                                        what, getpid(), serial));
    return un;
}

enum {
    WAITS_TO_READ,
    WAITS_TO_WRITE,
    WAITS_TO_ACCEPT,
    WAITS_FOR_PEER,
    WAITS_TO_CONNECT,
    WAITS_FOR_EVENT
};
typedef struct Subject {
    const char *kind, *warm;
    int fd, peer, inner, serial;
    bool full;
    struct sockaddr_un un;
    socklen_t len;
} Subject;

static void tcp_pair_of(int s[2]) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(l >= 0 && bind(l, (void *)&in, len) == 0 && listen(l, 1) == 0 &&
          getsockname(l, (void *)&in, &len) == 0);
    s[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(s[0], (void *)&in, len), 0);
    CHECK_GE(s[1] = accept(l, NULL, NULL), 0);
    RAW(close, l);
}

/* Another process has taken the bytes that the hook counts on. */
static void take_behind(int e[2]) {
    char b[8];
    CHECK_EQ(write(e[1], "taken...", 8), 8);
    CHECK_EQ(syscall(SYS_read, e[0], b, 8), 8);
}

static void make_fifo(Subject *s, int e[2]) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/gort-reuse-%d-%d", getpid(), s->serial);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_GE(e[0] = open(path, O_RDWR), 0);
    CHECK_GE(e[1] = RAW(openat, AT_FDCWD, path, O_RDWR), 0);
    unlink(path);
}

static void make_stream(Subject *s, bool sockets, bool to_write, bool counter) {
    int e[2];
    switch (counter ? 6 : pick(sockets ? 2 : to_write ? 6 : 7)) {
    case 0:
        s->kind = "stream";
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, e), 0);
        break;
    case 1:
        s->kind = "tcp";
        tcp_pair_of(e);
        break;
    case 2:
        s->kind = "pipe";
        CHECK_EQ(pipe(e), 0);
        if (!to_write && pick(2)) take_behind(e);
        if (to_write) {
            s->fd = e[1], s->peer = e[0];
            return;
        }
        break;
    case 3:
        s->kind = "fifo";
        make_fifo(s, e);
        break;
    case 4: /* nobody has told the hook */
        s->kind = "strange pipe";
        CHECK_EQ(RAW(pipe2, e, 0), 0);
        if (to_write) {
            s->fd = e[1], s->peer = e[0];
            return;
        }
        break;
    case 5: {
        struct termios t;
        s->kind = "terminal";
        CHECK_EQ(openpty(&e[1], &e[0], NULL, NULL, NULL), 0); /* its shell's side, and ours */
        CHECK_EQ(tcgetattr(e[0], &t), 0);
        cfmakeraw(&t);
        CHECK_EQ(tcsetattr(e[0], TCSANOW, &t), 0);
        break;
    }
    default:
        s->kind = "eventfd";
        CHECK_GE(e[0] = pick(2) ? eventfd(0, 0) : RAW(eventfd2, 0, 0), 0);
        CHECK_GE(e[1] = RAW(fcntl, e[0], F_DUPFD_CLOEXEC, HIGH), 0);
    }
    s->fd = e[0], s->peer = e[1];
}

/* A datagram socket without a peer, and one whose queue is full. */
static void make_datagrams(Subject *s) {
    s->kind = "datagrams";
    CHECK_GE(s->fd = socket(AF_UNIX, SOCK_DGRAM, 0), 0);
    CHECK_GE(s->peer = socket(AF_UNIX, SOCK_DGRAM, 0), 0);
    s->un = unix_name("datagrams", s->serial, &s->len);
    CHECK_EQ(bind(s->peer, (void *)&s->un, s->len), 0);
    int other = socket(AF_UNIX, SOCK_DGRAM, 0);
    while (sendto(other, "x", 1, MSG_DONTWAIT, (void *)&s->un, s->len) == 1) {}
    RAW(close, other);
}

static void make_listener(Subject *s, int *fd) {
    CHECK_GE(*fd = socket(AF_UNIX, SOCK_STREAM, 0), 0);
    s->un = unix_name("listener", s->serial, &s->len);
    CHECK_EQ(bind(*fd, (void *)&s->un, s->len), 0);
    CHECK_EQ(listen(*fd, 0), 0);
}

static int raw_connect(const Subject *s) {
    int c = RAW(socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int r = RAW(connect, c, &s->un, s->len);
    if (r != 0) raw_close(&c);
    return c;
}

static void make_connecting(Subject *s) {
    s->kind = "connecting";
    make_listener(s, &s->peer);
    while ((s->inner = raw_connect(s)) >= 0) raw_close(&s->inner); /* its backlog is full */
    CHECK_GE(s->fd = socket(AF_UNIX, SOCK_STREAM, 0), 0);
}

static void make_epoll(Subject *s) {
    struct epoll_event ev = {.events = EPOLLIN};
    int e[2];
    s->kind = "epoll";
    CHECK_EQ(pipe(e), 0);
    CHECK_GE(s->fd = epoll_create1(0), 0);
    CHECK_EQ(epoll_ctl(s->fd, EPOLL_CTL_ADD, e[0], &ev), 0);
    s->inner = e[0], s->peer = e[1];
}

/* Hundreds of calls that need not wait. */
#define WARM 400
static void warm_accept(Subject *s) {
    for (int i = 0; i < WARM; i++) {
        int c = raw_connect(s), a = accept(s->fd, NULL, NULL);
        CHECK(c >= 0 && a >= 0);
        raw_close(&c), raw_close(&a);
    }
}
static void warm(Subject *s, int waits) {
    uint64_t b = 1;
    if (waits == WAITS_TO_ACCEPT) warm_accept(s);
    for (int i = 0; i < WARM && waits == WAITS_TO_READ; i++) {
        CHECK_EQ(syscall(SYS_write, s->peer, &b, 8), 8);
        CHECK_EQ(read(s->fd, &b, 8), 8);
    }
    for (int i = 0; i < WARM && waits == WAITS_TO_WRITE; i++) {
        CHECK_EQ(write(s->fd, &b, 8), 8);
        CHECK_EQ(syscall(SYS_read, s->peer, &b, 8), 8);
    }
}

static void make_subject(Subject *s, int waits, bool sockets, bool few, bool counter) {
    static int serial;
    *s = (Subject){.fd = -1, .peer = -1, .inner = -1, .serial = ++serial, .warm = ""};
    switch (waits) {
    case WAITS_TO_READ: make_stream(s, sockets, false, false); break;
    case WAITS_TO_WRITE:
        make_stream(s, sockets, true, counter);
        s->full = pick(3) == 0 || few;
        break;
    case WAITS_FOR_PEER: make_datagrams(s); break;
    case WAITS_TO_ACCEPT:
        s->kind = "listener";
        make_listener(s, &s->fd);
        break;
    case WAITS_TO_CONNECT: make_connecting(s); break;
    default: make_epoll(s);
    }
    if (s->peer >= 0) raw_move(&s->peer, HIGH);
    if (pick(2)) { /* else as it was born, where the hook knows more of it */
        int to = fcntl(s->fd, F_DUPFD, NUMBER);
        CHECK_EQ(close(s->fd), 0);
        s->fd = to;
    }
    if (waits <= WAITS_TO_ACCEPT && pick(2)) {
        s->warm = ", warm";
        warm(s, waits);
    }
    uint64_t most = UINT64_MAX - 1 - 2 * pick(2); /* full, or it polls writable all the same */
    if (s->full && counter) CHECK_EQ(syscall(SYS_write, s->fd, &most, 8), 8);
    else if (s->full) raw_fill(s->fd);
}

/* The old file is ready now. */
static void make_ready(Subject *s, int waits) {
    static const uint64_t one = 1;
    switch (waits) {
    case WAITS_TO_READ:
    case WAITS_FOR_EVENT:
        raw_nonblock(s->peer, 1);
        CHECK(syscall(SYS_write, s->peer, &one, sizeof one) != 0);
        break;
    case WAITS_TO_WRITE:
    case WAITS_FOR_PEER: raw_drain(s->peer); break;
    case WAITS_TO_ACCEPT: s->inner = raw_connect(s); break;
    default:
        raw_nonblock(s->peer, 1);
        for (int c; (c = RAW(accept, s->peer, NULL, NULL)) >= 0;) RAW(close, c);
    }
}

/* ---- strangers ------------------------------------------------------------------------------- */

enum {
    PIPE_WITH_BYTES,
    PIPE_WITH_ROOM,
    STREAM,
    DATAGRAM,
    REGULAR,
    LISTENER,
    UNCONNECTED,
    EPOLL,
    STRANGERS
};
static const char *const stranger_names[] = {
    "a pipe with bytes", "a pipe with room",      "a stream", "a datagram socket", "a file",
    "a listener",        "an unconnected socket", "an epoll"};
typedef struct Stranger {
    int kind, fd, peer, inner, flags;
} Stranger;

static void make_stranger(Stranger *s, int kind) {
    int e[2] = {-1, -1};
    struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};
    Subject l = {.serial = -1};
    static int serial;
    *s = (Stranger){.kind = kind, .fd = -1, .peer = -1, .inner = -1};
    switch (kind) {
    case PIPE_WITH_BYTES:
    case PIPE_WITH_ROOM: CHECK_EQ(RAW(pipe2, e, 0), 0); break;
    case STREAM: CHECK_EQ(RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, e), 0); break;
    case DATAGRAM: CHECK_EQ(RAW(socketpair, AF_UNIX, SOCK_DGRAM, 0, e), 0); break;
    case REGULAR:
        e[0] = memfd_create("stranger", 0);
        CHECK_EQ(syscall(SYS_pwrite64, e[0], SOME, 8, 0), 8);
        break;
    case LISTENER:
        l.serial = --serial;
        make_listener(&l, &e[0]);
        CHECK_GE(s->inner = raw_connect(&l), 0);
        break;
    case UNCONNECTED: e[0] = RAW(socket, AF_UNIX, SOCK_STREAM, 0); break;
    default:
        CHECK_EQ(RAW(pipe2, e, 0), 0);
        CHECK_EQ(syscall(SYS_write, e[1], SOME, 8), 8);
        s->inner = e[0];
        e[0] = epoll_create1(0);
        CHECK_EQ(epoll_ctl(e[0], EPOLL_CTL_ADD, s->inner, &ev), 0);
    }
    if (kind == PIPE_WITH_BYTES || kind == STREAM || kind == DATAGRAM)
        CHECK_EQ(syscall(SYS_write, e[1], SOME, 8), 8);
    s->fd = e[kind == PIPE_WITH_ROOM], s->peer = e[kind != PIPE_WITH_ROOM];
    raw_move(&s->fd, HIGH);
    if (s->peer >= 0) raw_move(&s->peer, HIGH);
    if (s->inner >= 0) raw_move(&s->inner, HIGH);
    s->flags = raw_flags(s->fd);
}

static bool intact(const Stranger *s) {
    struct epoll_event ev;
    struct sockaddr_un un;
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    struct timespec none = {0, 0};
    socklen_t len = sizeof un;
    char b[16];
    if (raw_flags(s->fd) != s->flags) return false;
    switch (s->kind) {
    case PIPE_WITH_BYTES: return unread(s->fd) == 8;
    case PIPE_WITH_ROOM: return unread(s->peer) == 0;
    case STREAM:
    case DATAGRAM: return unread(s->fd) == 8 && unread(s->peer) == 0;
    case REGULAR:
        return lseek(s->fd, 0, SEEK_CUR) == 0 && pread(s->fd, b, 16, 0) == 8 &&
               memcmp(b, SOME, 8) == 0;
    case LISTENER: return RAW(ppoll, &p, 1, &none, NULL, 0) == 1;
    case UNCONNECTED: return getpeername(s->fd, (void *)&un, &len) == -1 && errno == ENOTCONN;
    default: return RAW(epoll_pwait, s->fd, &ev, 1, 0, NULL, 8) == 1;
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct Caller {
    Subject s;
    long result;
    int err, over, tid; /* tid: of the thread on which it calls; 0: not yet */
    char *buf;
} Caller;
typedef long call_fn(Caller *c);
#define CALL(name, expr)                                                                       \
    static long name(Caller *c) {                                                              \
        int fd = c->s.fd;                                                                      \
        char *buf = c->buf;                                                                    \
        struct iovec two[2] = {{buf, LONG / 2}, {buf + LONG / 2, LONG / 2}},                   \
                     small[2] = {{buf, 3}, {buf + 3, 5}};                                      \
        struct msghdr in = {.msg_iov = small, .msg_iovlen = 2},                                \
                      out = {.msg_iov = two, .msg_iovlen = 2};                                 \
        struct msghdr to = {                                                                   \
            .msg_iov = small, .msg_iovlen = 2, .msg_name = &c->s.un, .msg_namelen = c->s.len}; \
        struct pollfd p = {.fd = fd, .events = POLLIN};                                        \
        struct epoll_event ev[4];                                                              \
        struct sockaddr *sa = (void *)&c->s.un;                                                \
        (void)fd, (void)two, (void)small, (void)in, (void)out, (void)to, (void)p, (void)ev,    \
            (void)sa, (void)buf;                                                               \
        return (expr);                                                                         \
    }
static long select_on(int fd, bool with_p) {
    static fd_set sets[16]; /* one at a time waits here */
    fd_set *r = sets;
    if (fd >= FD_SETSIZE) return -1;
    FD_ZERO(r);
    FD_SET(fd, r);
    return with_p ? pselect(fd + 1, r, NULL, NULL, NULL, NULL)
                  : select(fd + 1, r, NULL, NULL, NULL);
}
static sigset_t no_signals;
CALL(c_read, read(fd, buf, 8))
CALL(c_readv, readv(fd, small, 2))
CALL(c_recv, recv(fd, buf, 8, 0))
CALL(c_recvfrom, recvfrom(fd, buf, 8, 0, NULL, NULL))
CALL(c_recvmsg, recvmsg(fd, &in, 0))
CALL(c_recv_all, recv(fd, buf, 64, MSG_WAITALL))
CALL(c_recvmsg_all, recvmsg(fd, &out, MSG_WAITALL))
CALL(c_write, write(fd, buf, LONG))
CALL(c_write_few, write(fd, buf, 8))
CALL(c_write_counter, write(fd, buf, 8))
CALL(c_writev_counter, writev(fd, &(struct iovec){buf, 8}, 1))
CALL(c_writev, writev(fd, two, 2))
CALL(c_send, send(fd, buf, LONG, 0))
CALL(c_sendmsg, sendmsg(fd, &out, 0))
CALL(c_sendto, sendto(fd, buf, 8, 0, sa, c->s.len))
CALL(c_sendmsg_to, sendmsg(fd, &to, 0))
CALL(c_accept, accept(fd, NULL, NULL))
CALL(c_accept4, accept4(fd, NULL, NULL, SOCK_CLOEXEC))
CALL(c_connect, connect(fd, sa, c->s.len))
CALL(c_poll, poll(&p, 1, -1))
CALL(c_ppoll, ppoll(&p, 1, NULL, NULL))
CALL(c_select, select_on(fd, false))
CALL(c_pselect, select_on(fd, true))
CALL(c_epoll_wait, epoll_wait(fd, ev, 4, -1))
CALL(c_epoll_pwait, epoll_pwait(fd, ev, 4, -1, NULL))
CALL(c_epoll_masked, epoll_pwait(fd, ev, 4, -1, &no_signals))
CALL(g_read, gort_read(fd, buf, 8))
CALL(g_readv, gort_readv(fd, small, 2))
CALL(g_read_full, gort_read_full(fd, buf, 64))
CALL(g_recv, gort_recv(fd, buf, 8, 0))
CALL(g_recv_all, gort_recv(fd, buf, 64, MSG_WAITALL))
CALL(g_recvfrom, gort_recvfrom(fd, buf, 8, 0, NULL, NULL))
CALL(g_recvmsg, gort_recvmsg(fd, &in, 0))
CALL(g_write_full, gort_write_full(fd, buf, LONG))
CALL(g_sendto, gort_sendto(fd, buf, 8, 0, sa, c->s.len))
CALL(g_sendmsg_to, gort_sendmsg(fd, &to, 0))
CALL(g_accept, gort_accept(fd, NULL, NULL))
CALL(g_connect, gort_connect(fd, sa, c->s.len))
CALL(g_poll, gort_poll(&p, 1, -1))

enum { SOCKETS = 1, POLLS = 2, ON_THREAD = 4, PARTIAL = 8, FEW = 16, COUNTER = 32 };
#define C(f, waits, flags) \
    { #f, f, waits, flags }
static const struct {
    const char *name;
    call_fn *call;
    int waits, flags;
} calls[] = {C(c_read, WAITS_TO_READ, 0),
             C(c_readv, WAITS_TO_READ, 0),
             C(c_recv, WAITS_TO_READ, SOCKETS),
             C(c_recvfrom, WAITS_TO_READ, SOCKETS),
             C(c_recvmsg, WAITS_TO_READ, SOCKETS),
             C(c_recv_all, WAITS_TO_READ, SOCKETS),
             C(c_recvmsg_all, WAITS_TO_READ, SOCKETS),
             C(c_write, WAITS_TO_WRITE, PARTIAL),
             C(c_write_few, WAITS_TO_WRITE, FEW),
             C(c_write_counter, WAITS_TO_WRITE, FEW | COUNTER),
             C(c_writev_counter, WAITS_TO_WRITE, FEW | COUNTER),
             C(c_writev, WAITS_TO_WRITE, PARTIAL),
             C(c_send, WAITS_TO_WRITE, SOCKETS | PARTIAL),
             C(c_sendmsg, WAITS_TO_WRITE, SOCKETS | PARTIAL),
             C(c_sendto, WAITS_FOR_PEER, 0),
             C(c_sendmsg_to, WAITS_FOR_PEER, 0),
             C(c_accept, WAITS_TO_ACCEPT, 0),
             C(c_accept4, WAITS_TO_ACCEPT, 0),
             C(c_connect, WAITS_TO_CONNECT, 0),
             C(c_poll, WAITS_TO_READ, POLLS),
             C(c_ppoll, WAITS_TO_READ, POLLS),
             C(c_select, WAITS_TO_READ, POLLS),
             C(c_pselect, WAITS_TO_READ, POLLS),
             C(c_epoll_wait, WAITS_FOR_EVENT, 0),
             C(c_epoll_pwait, WAITS_FOR_EVENT, 0),
             C(c_epoll_masked, WAITS_FOR_EVENT, ON_THREAD),
             C(g_read, WAITS_TO_READ, 0),
             C(g_readv, WAITS_TO_READ, 0),
             C(g_read_full, WAITS_TO_READ, 0),
             C(g_recv, WAITS_TO_READ, SOCKETS),
             C(g_recv_all, WAITS_TO_READ, SOCKETS),
             C(g_recvfrom, WAITS_TO_READ, SOCKETS),
             C(g_recvmsg, WAITS_TO_READ, SOCKETS),
             C(g_write_full, WAITS_TO_WRITE, PARTIAL),
             C(g_sendto, WAITS_FOR_PEER, 0),
             C(g_sendmsg_to, WAITS_FOR_PEER, 0),
             C(g_accept, WAITS_TO_ACCEPT, 0),
             C(g_connect, WAITS_TO_CONNECT, 0),
             C(g_poll, WAITS_TO_READ, POLLS)};
#define CALLS ((int)(sizeof calls / sizeof *calls))

static void caller_run(void *arg) {
    Caller *c = arg;
    int i = (int)c->result;
    set(&c->tid, (int)syscall(SYS_gettid));
    long r = calls[i].call(c);
    c->result = r;
    c->err = r < 0 ? errno : 0;
    set(&c->over, 1);
}

/* ---- closers --------------------------------------------------------------------------------- */

enum { CLOSE, DUP2, DUP3, FCLOSE, FREOPEN, CLOSE_RANGE, CLOSEFROM, GORT_CLOSE, CLOSERS };
static const char *const closer_names[] = {"close",   "dup2",        "dup3",      "fclose",
                                           "freopen", "close_range", "closefrom", "gort_close"};
enum { GOROUTINE, THREAD, IN_BLOCKING, PINNED, IN_HANDLER, PLACES };
static const char *const place_names[] = {"", " on a plain thread", " in gort_blocking", " pinned",
                                          " in a handler"};
/* What POSIX lets a handler call, or is a system call and no more. */
static bool is_handlers(int how) {
    return how == CLOSE || how == DUP2 || how == DUP3 || how == CLOSE_RANGE;
}
typedef struct Closing {
    int how, fd, number;
    FILE *file;
    const Stranger *s;
} Closing;

/* The number is the stranger's afterwards; or somebody holds it: .number says what the stranger
 * got. */
static long close_and_reuse(void *arg) {
    Closing *c = arg;
    switch (c->how) {
    case CLOSE: CHECK_EQ(close(c->fd), 0); break;
    case DUP2: c->number = dup2(c->s->fd, c->fd); return 0;
    case DUP3: c->number = dup3(c->s->fd, c->fd, O_CLOEXEC); return 0;
    case FCLOSE: fclose(c->file); break;
    case FREOPEN:
        CHECK((c->file = c->fd % 2 ? freopen("/dev/null", "r+", c->file)
                                   : freopen64("/dev/null", "r+", c->file)) != NULL);
        c->number = RAW(dup3, c->s->fd, c->fd, 0);
        return 0;
    case CLOSE_RANGE: CHECK_EQ(close_range((unsigned)c->fd, (unsigned)c->fd, 0), 0); break;
    case CLOSEFROM: closefrom(c->fd); break;
    default: CHECK_EQ(gort_close(c->fd), 0);
    }
    c->number = RAW(fcntl, c->s->fd, F_DUPFD, c->fd);
    return 0;
}
static void *closing_thread(void *arg) {
    close_and_reuse(arg);
    return NULL;
}

static Closing *handled;
static void closing_handler(int signo) { close_and_reuse(handled); }

static void close_at(Closing *c, int place) {
    pthread_t t;
    if (place == GOROUTINE) close_and_reuse(c);
    else if (place == IN_BLOCKING) gort_blocking(close_and_reuse, c);
    else if (place == PINNED) {
        gort_pin();
        close_and_reuse(c);
        gort_unpin();
    } else if (place == IN_HANDLER) {
        handled = c;
        CHECK_EQ(raise(SIGUSR1), 0);
    } else {
        CHECK_EQ(pthread_create(&t, NULL, closing_thread, c), 0);
        CHECK_EQ(pthread_join(t, NULL), 0);
    }
}

/* ---- a scene --------------------------------------------------------------------------------- */

static bool parked(void) { return waiting_for("IO wait") + waiting_for("sleep") > 0; }

/* Its thread is in a system call on the number. */
static bool in_kernel(Caller *c) {
    char path[64], text[64] = "";
    unsigned long first;
    long nr;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", get(&c->tid));
    int fd = (int)RAW(openat, AT_FDCWD, path, O_RDONLY);
    if (fd < 0) return false;
    RAW(read, fd, text, sizeof text - 1);
    RAW(close, fd);
    return sscanf(text, "%ld %lx", &nr, &first) == 2 && first == (unsigned long)c->s.fd;
}

/* Until the caller waits: in the poller, or, as some do on some kernels, in the kernel. */
static void until_it_waits(Caller *c, int call, bool eager) {
    wait_until(get(&c->tid) != 0);
    for (int i = 0; i < 200 && !get(&c->over); i++) {
        if (eager && !c->s.full && unread(c->s.peer) > 0) return;
        if (!eager && (parked() || (i > 20 && in_kernel(c)))) return;
        if (i > 20) gort_sleep(GORT_MS);
        else gort_yield();
        if (i > 40 && calls[call].flags & ON_THREAD) return;
    }
}

/* A terminal is written with a thread in the kernel, and goes on with the file it has. */
static bool returned(Caller *c, int waits, bool ready) {
    for (int i = 0; i < 4000 && !get(&c->over); i++) {
        if (i < 50) gort_yield();
        else gort_sleep(GORT_MS);
        if (waits == WAITS_TO_WRITE && ready) raw_drain(c->s.peer);
    }
    return get(&c->over);
}

static void finding(const char *what, uint64_t seed, const Caller *c) {
    printf("%s: seed %" PRIu64 ": %s (result %ld, errno %d)\n", what, seed, text, c->result,
           c->err);
    fflush(stdout);
    findings++;
    if (getenv("REUSE_ALL") == NULL) _Exit(1);
}

static void judge(uint64_t seed, Caller *c, int waits, const Stranger *s, bool polls, bool ready) {
    bool over = returned(c, waits, ready);
    if (!over) finding("it does not return", seed, c);
    if (!intact(s)) finding("a stranger was touched", seed, c);
    if (over && polls && !ready && c->result > 0)
        finding("a stranger's readiness was told", seed, c);
    if (over && c->err != 0 && c->err != EBADF && c->err != EPIPE && c->err != ECONNRESET &&
        c->err != EIO)
        finding("an odd error", seed, c);
}

static void scene(uint64_t seed) {
    Stranger s;
    rng = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 4; i++) test_random(&rng);
    int call = (int)(seed % CALLS), flags = calls[call].flags, waits = calls[call].waits;
    int how = (int)pick(CLOSERS), place = (int)pick(2) == 0 ? (int)pick(PLACES) : GOROUTINE;
    bool keep = pick(2), eager = (flags & PARTIAL) && pick(2),
         ready = pick(2) || (flags & ON_THREAD) != 0;
    if (how == GORT_CLOSE && place == IN_BLOCKING) place = GOROUTINE; /* it may wait */
    if (place == IN_HANDLER && !is_handlers(how)) place = PINNED;
    make_stranger(&s, (int)pick(STRANGERS));
    Caller *c = calloc(1, sizeof *c);
    c->buf = calloc(1, LONG);
    c->buf[0] = 5; /* for an eventfd */
    c->result = call;
    make_subject(&c->s, waits, flags & SOCKETS, flags & FEW, flags & COUNTER);
    if (how == CLOSEFROM && c->s.fd < NUMBER) how = CLOSE_RANGE; /* it would take others along */
    /* As it is, with a thread in the kernel that has the old file: */
    if (strcmp(c->s.kind, "terminal") == 0 && waits == WAITS_TO_WRITE) ready = true;
    Closing k = {.how = how, .fd = c->s.fd, .s = &s};
    int kept = keep ? RAW(fcntl, c->s.fd, F_DUPFD_CLOEXEC, HIGH) : -1;
    static const char *const modes[] = {"r+", "r", "w"};
    for (int i = 0; i < 3 && (how == FCLOSE || how == FREOPEN) && k.file == NULL; i++)
        k.file = fdopen(c->s.fd, modes[i]);
    snprintf(text, sizeof text, "%s on %s %d%s%s, %s%s, then %s%s%s", calls[call].name, c->s.kind,
             c->s.fd, c->s.warm, eager ? ", eager" : "", closer_names[how], place_names[place],
             stranger_names[s.kind], keep ? ", kept" : "", ready ? ", ready" : "");
    CHECK_EQ(gort_go(caller_run, c), 0);
    until_it_waits(c, call, eager);
    close_at(&k, place);
    if (ready) make_ready(&c->s, waits);
    if (getenv("REUSE_SHOW")) printf("seed %" PRIu64 ": %s\n", seed, text), fflush(stdout);
    judge(seed, c, waits, &s, flags & POLLS, ready);
    if (k.number >= 0) RAW(close, k.number);
    raw_close(&kept), raw_close(&s.fd), raw_close(&s.peer), raw_close(&s.inner);
    raw_close(&c->s.peer), raw_close(&c->s.inner);
    if (!get(&c->over)) return; /* left behind */
    if ((waits == WAITS_TO_ACCEPT) && c->result >= 0) RAW(close, (int)c->result);
    free(c->buf), free(c);
}

static int run(int argc, char **argv) {
    const char *from = getenv("REUSE_SEED"), *many = getenv("REUSE_SCENES");
    uint64_t first = from ? strtoull(from, NULL, 0) : 1,
             n = many ? strtoull(many, NULL, 0) : 6 * CALLS;
    signal(SIGUSR1, closing_handler);
    for (uint64_t i = first; i < first + n; i++) scene(i);
    if (findings) FAILF("%d findings", findings);
    return 0;
}

HOOK_MAIN(run)
