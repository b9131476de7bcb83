#define _GNU_SOURCE 1
/* Every kind of I/O once, by somebody who takes an error for an answer: closes what it has, and
 * tries again. Run as it is, it is one more test; with GORT_DEBUG=sysfault=...
 * (tests/script/io_faults.sh) each system call fails in turn with each error it can give. Whatever
 * fails: no wake-up is lost (it ends), no descriptor is left over, EINTR and EAGAIN never come out,
 * bytes are never wrong. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#define TRIES 300

/* An error that may come out of a call that was made to fail; 0 or more is fine. */
static long fine(long r, const char *what, int line) {
    if (r == -EINTR || r == -EAGAIN || r == -EBADF || r == -EFAULT || r < -4095)
        FAILF("line %d: %s gives %ld (%s)", line, what, r, strerror((int)-r));
    return r;
}
/* Evaluates a call; an error leaves the scene through `out`, with r as its result. */
#define TRY(call)                                              \
    do {                                                       \
        if ((r = fine((call), #call, __LINE__)) < 0) goto out; \
    } while (0)

/* The number is gone whatever close says. */
static void shut(int *fd) {
    if (*fd < 0) return;
    long r = gort_close(*fd);
    if (r != 0 && r != -EIO) FAILF("gort_close gives %ld", r);
    *fd = -1;
}

/* ---- a server and its clients ---------------------------------------------------------------- */

typedef struct Server {
    int listener, failed;
    gort_wg wg;
} Server;

static void echo(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[64];
    ssize_t n;
    while ((n = fine(gort_read(fd, buf, sizeof buf), "echo's read", __LINE__)) > 0)
        if (fine(gort_write_full(fd, buf, (size_t)n), "echo's write", __LINE__) < 0) break;
    shut(&fd);
}

/* Until the listener is closed: -EBADF is what it waits for here. */
static void accepts(void *arg) {
    Server *s = arg;
    for (;;) {
        int fd = gort_accept(s->listener, NULL, NULL);
        if (fd == -EBADF) return;
        CHECK_NE(fd, -ECONNABORTED); /* swallowed */
        if (fine(fd, "gort_accept", __LINE__) < 0) continue;
        if (gort_wg_go(&s->wg, echo, (void *)(intptr_t)fd) < 0) shut(&fd);
    }
}

static long talk(const char *addr) {
    char out[32], in[32];
    long r;
    int fd = -1;
    TRY(fd = gort_dial(addr, gort_now() + 100 * GORT_SEC));
    for (int i = 0; i < 3; i++) {
        memset(out, 'a' + i, sizeof out);
        TRY(gort_write_full(fd, out, sizeof out));
        r = gort_read_full_until(fd, in, sizeof in, gort_now() + 100 * GORT_SEC);
        if (r == -ENODATA) goto out; /* the server has had an error */
        TRY(r);
        CHECK(memcmp(in, out, sizeof in) == 0);
    }
    r = 0;
out:
    shut(&fd);
    return r;
}

static long tcp(void) {
    Server s = {.listener = -1};
    char addr[64];
    long r, more;
    TRY(s.listener = gort_listen("127.0.0.1:0", 0));
    TRY(gort_local_addr(s.listener, addr, sizeof addr));
    TRY(gort_wg_go(&s.wg, accepts, &s));
    r = talk(addr);
    more = talk(addr);
    if (r == 0) r = more;
out:;
    int listener = s.listener; /* accepts() reads the other one */
    shut(&listener);
    gort_wg_wait(&s.wg);
    return r;
}

static long names(void) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *res = NULL;
    int r = gort_getaddrinfo("127.0.0.1", "80", &hints, &res);
    if (r == 0) freeaddrinfo(res);
    return r == 0 ? 0 : -EIO;
}

/* ---- pipes, events, a close under a reader --------------------------------------------------- */

typedef struct Ends {
    int fd[2];
    long got;
    int64_t deadline;
    int closed; /* -EBADF is to be expected */
    char text[16];
} Ends;

static void reads(void *arg) {
    Ends *e = arg;
    e->got = gort_read_until(e->fd[0], e->text, sizeof e->text, e->deadline);
    if (!(e->closed && e->got == -EBADF)) fine(e->got, "gort_read", __LINE__);
}

static long with_reader(Ends *e, long (*act)(Ends *)) {
    gort_wg wg = {0};
    long r = fine(gort_wg_go(&wg, reads, e), "gort_wg_go", __LINE__);
    if (r < 0) return r;
    gort_yield();
    r = act(e);
    if (r < 0) shut(&e->fd[1]); /* the reader sees the end */
    gort_wg_wait(&wg);
    return r < 0 ? r : e->got < 0 ? e->got : r;
}

static long write_two(Ends *e) {
    struct iovec v[2] = {{"he", 2}, {"llo", 3}};
    return fine(gort_writev(e->fd[1], v, 2), "gort_writev", __LINE__);
}

static long pipes(void) {
    Ends e = {.deadline = GORT_FOREVER};
    if (pipe2(e.fd, O_CLOEXEC) < 0) return -errno;
    long r = with_reader(&e, write_two);
    if (r >= 0) CHECK(e.got == 5 && memcmp(e.text, "hello", 5) == 0);
    shut(&e.fd[0]);
    shut(&e.fd[1]);
    return r < 0 ? r : 0;
}

static long close_it(Ends *e) {
    int fd = e->fd[0]; /* it may be parked by now or only on its way: -EBADF in either case */
    for (int i = 0; i < 10; i++) gort_yield();
    shut(&fd);
    return 0;
}

static long close_under_a_reader(void) {
    Ends e = {.deadline = GORT_FOREVER, .got = 99, .closed = 1};
    if (pipe2(e.fd, O_CLOEXEC) < 0) return -errno;
    with_reader(&e, close_it);
    shut(&e.fd[1]);
    return e.got == -EBADF ? 0 : e.got;
}

static long nothing(Ends *e) { return 0; }

static long deadline(void) {
    Ends e = {.deadline = gort_now() + GORT_MS};
    if (pipe2(e.fd, O_CLOEXEC) < 0) return -errno;
    with_reader(&e, nothing);
    shut(&e.fd[0]);
    shut(&e.fd[1]);
    return e.got == -ETIMEDOUT ? 0 : e.got;
}

static void *plain_reader(void *arg) {
    reads(arg);
    return NULL;
}

static long plain_thread(void) {
    Ends e = {.deadline = GORT_FOREVER};
    pthread_t th;
    long r;
    int64_t one = 1;
    if ((e.fd[0] = eventfd(0, EFD_CLOEXEC)) < 0) return -errno;
    if (pthread_create(&th, NULL, plain_reader, &e) != 0) FAILF("no thread");
    do r = fine(gort_write(e.fd[0], &one, sizeof one), "gort_write", __LINE__);
    while (r < 0);
    pthread_join(th, NULL);
    shut(&e.fd[0]);
    return e.got < 0 ? e.got : 0;
}

static void polled_one(void *arg) {
    int *fd = arg;
    while (fine(gort_write(*fd, "x", 1), "gort_write", __LINE__) < 0) {}
}

static long polls(void) {
    int a[2], b[2] = {-1, -1};
    gort_wg wg = {0};
    long r;
    if (pipe2(a, O_CLOEXEC) < 0) return -errno;
    if (pipe2(b, O_CLOEXEC) < 0) FAILF("pipe2");
    struct pollfd p[2] = {{.fd = a[0], .events = POLLIN}, {.fd = b[0], .events = POLLIN}};
    TRY(gort_wg_go(&wg, polled_one, &b[1]));
    TRY(gort_poll(p, 2, -1));
    CHECK(p[0].revents == 0 && (p[1].revents & POLLIN));
    r = 0;
out:
    gort_wg_wait(&wg);
    for (int i = 0; i < 2; i++) shut(&a[i]), shut(&b[i]);
    return r;
}

/* ---- messages -------------------------------------------------------------------------------- */

static long send_fd(int to, int fd) {
    char room[CMSG_SPACE(sizeof(int))] = "";
    struct iovec v = {"f", 1};
    struct msghdr msg = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return gort_sendmsg(to, &msg, 0);
}

static long recv_fd(int from, int *fd) {
    char room[CMSG_SPACE(sizeof(int))] = "", text;
    struct iovec v = {&text, 1};
    struct msghdr msg = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    long r = gort_recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
    if (r == 1 && CMSG_FIRSTHDR(&msg)) memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof *fd);
    return r;
}

static long passed(void) {
    int s[2], got = -1;
    long r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) < 0) return -errno;
    TRY(send_fd(s[0], s[0]));
    TRY(recv_fd(s[1], &got));
    CHECK_GE(got, 0);
    TRY(gort_send(got, "abc", 3, 0));
    char text[4];
    TRY(gort_recv(s[1], text, 3, MSG_WAITALL));
    CHECK(r == 3 && memcmp(text, "abc", 3) == 0);
    r = 0;
out:
    shut(&got);
    shut(&s[0]);
    shut(&s[1]);
    return r;
}

static long datagrams(void) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       from;
    socklen_t len = sizeof in, flen = sizeof from;
    char text[16];
    long r;
    int a = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
        b = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(a >= 0 && b >= 0 && bind(a, (void *)&in, sizeof in) == 0 &&
          getsockname(a, (void *)&in, &len) == 0);
    TRY(gort_connect(b, (void *)&in, len));
    TRY(gort_sendto(b, "datagram", 8, 0, (void *)&in, len));
    TRY(gort_recvfrom(a, text, sizeof text, 0, (void *)&from, &flen));
    CHECK(r == 8 && memcmp(text, "datagram", 8) == 0);
    r = 0;
out:
    shut(&a);
    shut(&b);
    return r;
}

static long unix_socket(void) {
    char addr[64];
    long r;
    int l = -1, a = -1, b = -1;
    static int number;
    snprintf(addr, sizeof addr, "unix:@io_faults.%d.%d", (int)getpid(), number++);
    TRY(l = gort_listen(addr, 1));
    TRY(a = gort_dial(addr, GORT_FOREVER));
    TRY(b = gort_accept(l, NULL, NULL));
    TRY(gort_write_full(a, "unix", 4));
    char text[4];
    r = gort_read_full(b, text, 4);
    if (r == -ENODATA) goto out;
    TRY(r);
    CHECK(memcmp(text, "unix", 4) == 0);
    r = 0;
out:
    shut(&b);
    shut(&a);
    shut(&l);
    return r;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char path[128];

static long files(void) {
    char text[32];
    struct iovec v[2] = {{text, 4}, {text + 4, 8}};
    long r;
    int fd = -1;
    TRY(fd = gort_open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    TRY(gort_write_full(fd, "0123456789ab", 12));
    TRY(gort_pwrite(fd, "XY", 2, 3));
    TRY(gort_fsync(fd));
    memset(text, 0, sizeof text);
    TRY(gort_pread(fd, text, sizeof text, 0));
    CHECK(r == 12 && memcmp(text, "012XY56789ab", 12) == 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    memset(text, 0, sizeof text);
    TRY(gort_readv(fd, v, 2));
    CHECK(memcmp(text, "012XY56789ab", (size_t)r) == 0);
    TRY(gort_read(fd, text, sizeof text));
    r = 0;
out:
    shut(&fd);
    return r;
}

/* ---- */

static const struct {
    const char *name;
    long (*run)(void);
} scenes[] = {{"tcp", tcp},
              {"names", names},
              {"pipes", pipes},
              {"close_under_a_reader", close_under_a_reader},
              {"deadline", deadline},
              {"plain_thread", plain_thread},
              {"polls", polls},
              {"passed", passed},
              {"datagrams", datagrams},
              {"unix_socket", unix_socket},
              {"files", files}};

static int run(int argc, char **argv) {
    snprintf(path, sizeof path, "%s/gort-io-faults.%d",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    int before = count_fds();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        long r = -1;
        for (int k = 0; k < TRIES && r < 0; k++) {
            r = scenes[i].run();
            wait_until(gort_count() == 1);
            int now = count_fds();
            CHECKF(now == before, "%s (%ld): %d descriptors, %d before", scenes[i].name, r, now,
                   before);
        }
        CHECKF(r >= 0, "%s: %s", scenes[i].name, strerror((int)-r));
    }
    unlink(path);
    return 0;
}

int main(int argc, char **argv) {
    int before = count_fds(), r = gort_main(run, argc, argv);
    if (r == -ENOMEM || r == -EAGAIN) return 0; /* it could not start, and said so */
    CHECK_EQ(r, 0);
    CHECK_EQ(count_fds(), before);
    return 0;
}
