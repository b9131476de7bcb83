/*
 * The hooked calls give what libc's give. A searcher: by seed a descriptor of some kind, with
 * something in it, and a call with arguments from the edges (nothing to move, no pieces, too many,
 * bad pointers, odd flags, numbers that are not open, sets that end where a page does); once by
 * libc's own function on a plain thread, once by the hook's on a goroutine, on another descriptor
 * just like it. Result, errno, every byte of the memory handed in, and what is left in the
 * descriptor must be the same.
 *
 * SAME_SEED=n begins there, SAME_CASES=n of them; SAME_ALL=1 goes on after a finding.
 */
#include "hook.h"
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/select.h>

static uint64_t rng;
static uint32_t pick(uint32_t n) { return (uint32_t)(test_random(&rng) >> 33) % n; }
#define ONE_OF(...) \
    ((const long[]){__VA_ARGS__}[pick(sizeof(const long[]){__VA_ARGS__} / sizeof(long))])

/* ---- descriptors ----------------------------------------------------------------------------- */

enum {
    PIPE_READ,
    PIPE_WRITE,
    STREAM,
    PACKETS,
    DATAGRAMS,
    REGULAR,
    EVENT,
    NULL_DEVICE,
    ZERO_DEVICE,
    LISTENER,
    EPOLL,
    HUNG,
    NOT_OPEN,
    KINDS
};
static const char *const kind_names[] = {
    "pipe",      "pipe, writing", "stream",   "packets", "datagrams", "file",    "eventfd",
    "/dev/null", "/dev/zero",     "listener", "epoll",   "hung",      "not open"};
typedef struct Made {
    int kind, fd, peer, third;
} Made;

static void put_messages(int fd) {
    CHECK_EQ(syscall(SYS_write, fd, "0123456789", 10), 10);
    CHECK_EQ(syscall(SYS_write, fd, "abc", 3), 3);
}

static void make(Made *m, int kind, bool nonblock) {
    int e[2] = {-1, -1};
    struct timeval soon = {0, 2000};
    struct epoll_event ev = {.events = EPOLLIN};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    *m = (Made){.kind = kind, .fd = -1, .peer = -1, .third = -1};
    switch (kind) {
    case PIPE_READ:
    case PIPE_WRITE: CHECK_EQ(pipe(e), 0); break;
    case STREAM:
    case PACKETS:
    case DATAGRAMS: CHECK_EQ(socketpair(AF_UNIX, types[kind - STREAM], 0, e), 0); break;
    case REGULAR:
        CHECK_GE(e[0] = memfd_create("same", 0), 0);
        CHECK_EQ(pwrite(e[0], "0123456789", 10, 0), 10);
        break;
    case EVENT: CHECK_GE(e[0] = eventfd(3, 0), 0); break;
    case NULL_DEVICE: CHECK_GE(e[0] = open("/dev/null", O_RDWR), 0); break;
    case ZERO_DEVICE: CHECK_GE(e[0] = open("/dev/zero", O_RDWR), 0); break;
    case LISTENER:
        CHECK_GE(e[0] = socket(AF_INET, SOCK_STREAM, 0), 0);
        CHECK(bind(e[0], (void *)&in, len) == 0 && listen(e[0], 4) == 0 &&
              getsockname(e[0], (void *)&in, &len) == 0);
        CHECK_GE(e[1] = socket(AF_INET, SOCK_STREAM, 0), 0);
        CHECK_EQ(connect(e[1], (void *)&in, len), 0);
        break;
    case EPOLL:
        CHECK_EQ(pipe(e), 0);
        put_messages(e[1]);
        m->third = e[0];
        CHECK_GE(e[0] = epoll_create1(0), 0);
        CHECK_EQ(epoll_ctl(e[0], EPOLL_CTL_ADD, m->third, &ev), 0);
        break;
    case HUNG:
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, e), 0);
        CHECK_EQ(close(e[1]), 0);
        e[1] = -1;
        break;
    default: e[0] = 890; /* in the kernel's table or not */
    }
    if (kind == PIPE_READ || (kind >= STREAM && kind <= DATAGRAMS)) put_messages(e[1]);
    m->fd = e[kind == PIPE_WRITE], m->peer = e[kind != PIPE_WRITE];
    if (kind >= STREAM && kind <= LISTENER) {
        setsockopt(m->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
        setsockopt(m->fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    }
    if (nonblock && kind != NOT_OPEN) fcntl(m->fd, F_SETFL, fcntl(m->fd, F_GETFL) | O_NONBLOCK);
}

static void unmake(Made *m) {
    if (m->kind != NOT_OPEN) close(m->fd);
    if (m->peer >= 0) close(m->peer);
    if (m->third >= 0) close(m->third);
}

/* What is left, as one number. */
static long rest_of(const Made *m) {
    char b[64];
    int n = 0, k = 0;
    long sum = 0;
    if (m->kind == NOT_OPEN) return 0;
    if (m->kind == REGULAR) return lseek(m->fd, 0, SEEK_CUR) * 1000 + lseek(m->fd, 0, SEEK_END);
    if (m->kind == EVENT || m->kind == EPOLL || m->kind >= NULL_DEVICE) {
        struct pollfd p = {.fd = m->fd, .events = POLLIN};
        return syscall(SYS_poll, &p, 1, 0) * 100 + p.revents;
    }
    while ((n = (int)syscall(SYS_recvfrom, m->fd, b, sizeof b, MSG_DONTWAIT, NULL, NULL)) >= 0 &&
           k++ < 5)
        sum = sum * 31 + n + 1;
    if (m->kind < STREAM) ioctl(m->fd, FIONREAD, &n), sum = n + 7;
    for (k = 0;
         m->kind >= STREAM &&
         (n = (int)syscall(SYS_recvfrom, m->peer, b, sizeof b, MSG_DONTWAIT, NULL, NULL)) >= 0 &&
         k++ < 5;)
        sum = sum * 37 + n + 1;
    return sum;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum {
    READ,
    WRITE,
    READV,
    WRITEV,
    RECV,
    SEND,
    RECVFROM,
    SENDTO,
    RECVMSG,
    SENDMSG,
    ACCEPT,
    POLL,
    PPOLL,
    SELECT,
    PSELECT,
    EPOLL_WAIT,
    DUP2,
    DUP3,
    FSYNC,
    FLOCK,
    CALLS
};
static const char *const call_names[] = {"read",       "write",    "readv",  "writev",  "recv",
                                         "send",       "recvfrom", "sendto", "recvmsg", "sendmsg",
                                         "accept",     "poll",     "ppoll",  "select",  "pselect",
                                         "epoll_wait", "dup2",     "dup3",   "fsync",   "flock"};
#define MEMORY 16384
typedef struct Args {
    int call, fd;
    long n, flags, count, timeout, nsec;
    bool null, odd;
    char *memory; /* MEMORY bytes, and then a page that is nobody's */
} Args;

/* libc's own, or the hook's. */
static void *libc;
#define DO(name, ...) \
    (own ? ((__typeof__(&name))dlsym(libc, #name))(__VA_ARGS__) : name(__VA_ARGS__))

static long one(const Args *a, bool own, int *err) {
    char *b = a->memory, *buf = a->null ? NULL : b + 1024;
    struct iovec *iov = (void *)b;
    struct msghdr *msg = (void *)(b + 256);
    struct sockaddr *sa = a->odd ? (void *)(b + 512) : NULL;
    socklen_t *len = (void *)(b + 640);
    struct pollfd *p = (void *)(b + 768);
    struct epoll_event *ev = (void *)(b + 4096);
    fd_set *set = (void *)(b + MEMORY - sizeof(fd_set)); /* behind it is nothing */
    struct timespec ts = {a->timeout, a->nsec};
    struct timeval tv = {a->timeout, a->nsec / 1000};
    long r;
    for (int i = 0; i < 3; i++)
        iov[i] =
            (struct iovec){b + 2048 + 128 * i, (size_t)(a->n >> (2 * i) & 3) * (i == 2 ? 5 : 1)};
    *msg = (struct msghdr){.msg_iov = iov,
                           .msg_iovlen = (size_t)(a->count < 0 || a->count > 3 ? 0 : a->count)};
    *len = a->odd ? 16 : 0;
    p[0] = (struct pollfd){.fd = a->fd, .events = (short)(a->n & 0x47)};
    p[1] = (struct pollfd){.fd = a->odd ? -1 : a->fd, .events = POLLIN, .revents = 77};
    errno = 0;
    switch (a->call) {
    case READ: r = DO(read, a->fd, buf, (size_t)a->n); break;
    case WRITE: r = DO(write, a->fd, buf, (size_t)a->n); break;
    case READV: r = DO(readv, a->fd, a->null ? NULL : iov, (int)a->count); break;
    case WRITEV: r = DO(writev, a->fd, a->null ? NULL : iov, (int)a->count); break;
    case RECV: r = DO(recv, a->fd, buf, (size_t)a->n, (int)a->flags); break;
    case SEND: r = DO(send, a->fd, buf, (size_t)a->n, (int)a->flags); break;
    case RECVFROM:
        r = DO(recvfrom, a->fd, buf, (size_t)a->n, (int)a->flags, sa, sa ? len : NULL);
        break;
    case SENDTO: r = DO(sendto, a->fd, buf, (size_t)a->n, (int)a->flags, sa, sa ? 16 : 0); break;
    case RECVMSG: r = DO(recvmsg, a->fd, msg, (int)a->flags); break;
    case SENDMSG: r = DO(sendmsg, a->fd, msg, (int)a->flags); break;
    case ACCEPT: r = DO(accept, a->fd, sa, sa ? len : NULL); break;
    case POLL:
        r = DO(poll, a->null ? NULL : p,
               (nfds_t)(a->null            ? 0
                        : a->count == 1025 ? 1 << 30
                                           : a->count),
               (int)(a->timeout < 0 ? 0 : a->nsec / 1000000));
        break;
    case PPOLL: r = DO(ppoll, p, (nfds_t)(a->count & 1) + 1, &ts, NULL); break;
    case SELECT:
    case PSELECT:
        if (a->fd >= 0 && a->fd < FD_SETSIZE && a->odd) FD_SET(a->fd, set);
        if (a->count == 1025) FD_SET(1023, set);
        r = a->call == SELECT ? DO(select, (int)a->flags, a->n & 1 ? set : NULL,
                                   a->n & 5 ? NULL : set, a->n & 4 && !(a->n & 1) ? set : NULL, &tv)
                              : DO(pselect, (int)a->flags, set, NULL, NULL, &ts, NULL);
        if (a->call == SELECT && r == 0 && (tv.tv_sec || tv.tv_usec)) r = 7; /* too early */
        if (a->call == SELECT)
            r = r * 10 + (tv.tv_sec < 0) + 2 * (tv.tv_usec < 0) + 4 * (tv.tv_usec > 999999);
        break;
    case EPOLL_WAIT:
        r = DO(epoll_wait, a->fd, a->null ? NULL : ev, (int)a->count, (int)(a->nsec / 1000000));
        break;
    case DUP2: r = DO(dup2, a->fd, a->odd ? a->fd : (int)a->flags); break;
    case DUP3: r = DO(dup3, a->fd, a->odd ? a->fd : 700, (int)a->flags); break;
    case FSYNC: r = DO(fsync, a->fd); break;
    default: r = DO(flock, a->fd, (int)a->flags); break;
    }
    *err = errno;
    if ((a->call == DUP2 || a->call == DUP3) && r >= 0 && r != a->fd) syscall(SYS_close, (int)r);
    if (a->call == ACCEPT && r >= 0) r = !syscall(SYS_close, (int)r);
    if (a->call == ACCEPT && sa) memset(b + 514, 0, 2); /* its peer's port */
    p[0].fd = p[1].fd = 0;                              /* of two descriptors */
    if (a->call == SELECT || a->call == PSELECT) {
        bool in = a->fd >= 0 && a->fd < FD_SETSIZE && FD_ISSET(a->fd, set);
        if (in) FD_CLR(a->fd, set);
        r = r * 2 + in;
    }
    return r;
}

static void draw(Args *a) {
    a->call = (int)pick(CALLS);
    a->n = ONE_OF(0, 0, 1, 3, 4, 5, 8, 21, 60, 63, -1);
    a->count = ONE_OF(0, 0, 1, 1, 2, 3, -1, 1025);
    a->flags = ONE_OF(0, 0, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_DONTWAIT, MSG_OOB, MSG_NOSIGNAL,
                      MSG_WAITALL | MSG_PEEK);
    a->null = pick(8) == 0;
    a->odd = pick(2);
    a->timeout = ONE_OF(0, 0, 0, 0, -1);
    a->nsec = ONE_OF(0, 0, 1000000, 2000000, -1000, 1000000000);
    if (a->call == SELECT || a->call == PSELECT)
        a->flags = ONE_OF(-1, 0, 1, 64, 100, 700, 1024, 1025, 5000, 1 << 20, INT32_MAX);
    if (a->call == EPOLL_WAIT || a->call == POLL) a->nsec = ONE_OF(0, 1000000, 2000000);
    if (a->call == FLOCK) a->flags = ONE_OF(LOCK_SH, LOCK_EX, LOCK_UN, LOCK_SH | LOCK_NB, 0, 99);
    if (a->call == DUP2) a->flags = ONE_OF(-1, 700, 1 << 30);
    if (a->call == DUP3) a->flags = ONE_OF(0, O_CLOEXEC, 1);
    /* a send goes on until the memory ends */
    if (a->n == -1 && a->call != READ && a->call != RECV) a->n = 2;
}

/* ---- both ------------------------------------------------------------------------------------ */

typedef struct Side {
    Args a;
    long r, rest;
    int err;
} Side;

static void *libcs_side(void *arg) {
    Side *s = arg;
    s->r = one(&s->a, true, &s->err);
    return NULL;
}

static char *memory_before_nothing(void) {
    char *m = mmap(NULL, MEMORY + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m != MAP_FAILED && mprotect(m + MEMORY, 4096, PROT_NONE) == 0);
    return m;
}

static int findings;
static void compare(uint64_t seed, char *memory[2]) {
    Side side[2];
    pthread_t t;
    rng = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 4; i++) test_random(&rng);
    int kind = (int)pick(KINDS);
    bool nonblock = pick(4) == 0;
    Args a;
    draw(&a);
    if ((a.call == WRITE || a.call == SEND || a.call == SENDTO) && a.n > 60) a.n = 60;
    /* nothing, where it tells */
    if ((a.call == READV || a.call == WRITEV || a.call == RECVMSG || a.call == SENDMSG) &&
        pick(2)) {
        kind = STREAM + (int)pick(3);
        if (pick(2)) a.n = 0;
    }
    if (a.call == SELECT && pick(3) == 0) kind = HUNG, a.n = 4 * pick(2);
    if (a.call == ACCEPT && kind != LISTENER && kind != STREAM && kind != REGULAR) kind = LISTENER;
    for (int i = 0; i < 2; i++) {
        Made m;
        make(&m, kind, nonblock);
        memset(memory[i], 0, MEMORY);
        side[i] = (Side){.a = a};
        side[i].a.fd = m.fd, side[i].a.memory = memory[i];
        if (i == 0)
            CHECK(pthread_create(&t, NULL, libcs_side, &side[0]) == 0 &&
                  pthread_join(t, NULL) == 0);
        else side[1].r = one(&side[1].a, false, &side[1].err);
        for (int k = 0; k < 3; k++) ((struct iovec *)(void *)memory[i])[k].iov_base = NULL;
        memset(memory[i] + 256, 0, offsetof(struct msghdr, msg_flags));
        side[i].rest = rest_of(&m);
        unmake(&m);
    }
    bool same = side[0].r == side[1].r && (side[0].r >= 0 || side[0].err == side[1].err) &&
                side[0].rest == side[1].rest && memcmp(memory[0], memory[1], MEMORY) == 0;
    if (same) return;
    printf("seed %" PRIu64 ": %s on %s%s, n %ld, count %ld, flags %ld, null %d, odd %d, time %ld "
           "%ld: libc %ld (%d, rest %ld), hook %ld (%d, rest %ld)%s\n",
           seed, call_names[a.call], kind_names[kind], nonblock ? ", O_NONBLOCK" : "", a.n, a.count,
           a.flags, a.null, a.odd, a.timeout, a.nsec, side[0].r, side[0].err, side[0].rest,
           side[1].r, side[1].err, side[1].rest,
           memcmp(memory[0], memory[1], MEMORY) ? ", other memory" : "");
    fflush(stdout);
    findings++;
    if (getenv("SAME_ALL") == NULL) _Exit(1);
}

static int run(int argc, char **argv) {
    const char *from = getenv("SAME_SEED"), *many = getenv("SAME_CASES");
    uint64_t first = from ? strtoull(from, NULL, 0) : 1, n = many ? strtoull(many, NULL, 0) : 3000;
    char *memory[2] = {memory_before_nothing(), memory_before_nothing()};
    signal(SIGPIPE, SIG_IGN);
    CHECK((libc = dlopen("libc.so.6", RTLD_NOW)) != NULL);
    for (uint64_t i = first; i < first + n; i++) compare(i, memory);
    if (findings) FAILF("%d findings", findings);
    return 0;
}

HOOK_MAIN(run)
