#define _GNU_SOURCE 1
// not-with: emulation (qemu looks at pointers and TCP_INFO in its own way)
/* The calls give what their POSIX namesakes give: every call on every kind of descriptor, with
 * lengths and pointers of every sort, once by POSIX on a non-blocking descriptor and once by gort
 * on one just like it, with a deadline that has passed. EAGAIN there is ETIMEDOUT here; all else is
 * the same: result, bytes, and errno is left alone. From goroutines and from plain threads. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

/* ---- kinds of descriptors: fd, and what must be closed with it ------------------------------- */

typedef struct Made {
    int fd, other;
    char path[96];
} Made;

static char dir[64];
static int serial;

static void by_pipe(Made *m, int end, const char *text) {
    int p[2];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    if (text) CHECK_EQ(write(p[1], text, strlen(text)), strlen(text));
    m->fd = p[end];
    m->other = p[1 - end];
}
static void pipe_with_bytes(Made *m) { by_pipe(m, 0, "0123456789"); }
static void pipe_empty(Made *m) { by_pipe(m, 0, NULL); }
static void pipe_for_writing(Made *m) { by_pipe(m, 1, NULL); }
static void pipe_at_its_end(Made *m) {
    by_pipe(m, 0, NULL);
    close(m->other);
    m->other = -1;
}
static void pipe_broken(Made *m) {
    by_pipe(m, 1, NULL);
    close(m->other);
    m->other = -1;
}
static void by_pair(Made *m, int type, const char *text) {
    int p[2];
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p), 0);
    if (text) CHECK_EQ(send(p[1], text, strlen(text), 0), strlen(text));
    m->fd = p[0];
    m->other = p[1];
}
static void stream(Made *m) { by_pair(m, SOCK_STREAM, "0123456789"); }
static void stream_empty(Made *m) { by_pair(m, SOCK_STREAM, NULL); }
static void packets(Made *m) { by_pair(m, SOCK_SEQPACKET, "0123456789"); }
static void datagrams(Made *m) { by_pair(m, SOCK_DGRAM, "0123456789"); }
static void stream_shut(Made *m) {
    by_pair(m, SOCK_STREAM, NULL);
    shutdown(m->fd, SHUT_RDWR);
}
static void stream_gone(Made *m) {
    by_pair(m, SOCK_STREAM, NULL);
    close(m->other);
    m->other = -1;
}
static int tcp_listener(struct sockaddr_in *in) {
    socklen_t len = sizeof *in;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(l >= 0 && bind(l, (void *)in, sizeof *in) == 0 && listen(l, 8) == 0);
    CHECK_EQ(getsockname(l, (void *)in, &len), 0);
    return l;
}
static void tcp_made(Made *m, const char *text) {
    struct sockaddr_in in;
    int l = tcp_listener(&in);
    m->other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(m->other, (void *)&in, sizeof in), 0);
    m->fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    CHECK_GE(m->fd, 0);
    close(l);
    if (text) CHECK_EQ(send(m->other, text, strlen(text), 0), strlen(text));
    while (text && recv(m->fd, &(char[16]){0}, 16, MSG_PEEK) != (ssize_t)strlen(text)) {}
}
static void tcp(Made *m) { tcp_made(m, "0123456789"); }
static void tcp_empty(Made *m) { tcp_made(m, NULL); }
static void tcp_unconnected(Made *m) { m->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void tcp_listening(Made *m) {
    struct sockaddr_in in;
    m->fd = tcp_listener(&in);
}
static void udp_unconnected(Made *m) { m->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }
static void file_as(Made *m, int flags) {
    snprintf(m->path, sizeof m->path, "%s/%d", dir, serial++);
    int w = open(m->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_EQ(write(w, "0123456789", 10), 10);
    close(w);
    m->fd = open(m->path, flags | O_CLOEXEC);
    CHECK_GE(m->fd, 0);
}
static void file(Made *m) { file_as(m, O_RDWR); }
static void file_read_only(Made *m) { file_as(m, O_RDONLY); }
static void file_write_only(Made *m) { file_as(m, O_WRONLY); }
static void file_append(Made *m) { file_as(m, O_RDWR | O_APPEND); }
static void file_path(Made *m) { file_as(m, O_PATH); }
static void directory(Made *m) { m->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
static void event(Made *m) { m->fd = eventfd(3, EFD_CLOEXEC); }
static void event_zero(Made *m) { m->fd = eventfd(0, EFD_CLOEXEC); }
static void dev_null(Made *m) { m->fd = open("/dev/null", O_RDWR | O_CLOEXEC); }
static void dev_zero(Made *m) { m->fd = open("/dev/zero", O_RDWR | O_CLOEXEC); }
static void dev_full(Made *m) { m->fd = open("/dev/full", O_RDWR | O_CLOEXEC); }
static void an_epoll(Made *m) { m->fd = epoll_create1(EPOLL_CLOEXEC); }
static void memory(Made *m) {
    m->fd = memfd_create("same", MFD_CLOEXEC);
    CHECK_EQ(pwrite(m->fd, "0123456789", 10, 0), 10);
}
static void minus_one(Made *m) { m->fd = -1; }
static void very_high(Made *m) { m->fd = 1 << 30; }
static void never_opened(Made *m) { m->fd = 900; }

#define K(f) \
    { #f, f }
static const struct {
    const char *name;
    void (*make)(Made *);
} kinds[] = {K(pipe_with_bytes),
             K(pipe_empty),
             K(pipe_for_writing),
             K(pipe_at_its_end),
             K(pipe_broken),
             K(stream),
             K(stream_empty),
             K(packets),
             K(datagrams),
             K(stream_shut),
             K(stream_gone),
             K(tcp),
             K(tcp_empty),
             K(tcp_unconnected),
             K(tcp_listening),
             K(udp_unconnected),
             K(file),
             K(file_read_only),
             K(file_write_only),
             K(file_append),
             K(file_path),
             K(directory),
             K(event),
             K(event_zero),
             K(dev_null),
             K(dev_zero),
             K(dev_full),
             K(an_epoll),
             K(memory),
             K(minus_one),
             K(very_high),
             K(never_opened)};

/* ---- calls: by POSIX, and by gort with a passed deadline ------------------------------------- */

typedef struct Args {
    char *buf; /* NULL: a bad pointer */
    size_t n;
} Args;
typedef long call_fn(int fd, Args *a, int gort);

static long posix(long r) { return r < 0 ? -errno : r; }
#define BOTH(p, g) (gort ? (long)(g) : posix(p))

static long c_read(int fd, Args *a, int gort) {
    return BOTH(read(fd, a->buf, a->n), gort_read_until(fd, a->buf, a->n, 0));
}
static long c_write(int fd, Args *a, int gort) {
    return BOTH(write(fd, a->buf, a->n), gort_write_until(fd, a->buf, a->n, 0));
}
static long c_recv(int fd, Args *a, int gort) {
    return BOTH(recv(fd, a->buf, a->n, 0), gort_recv_until(fd, a->buf, a->n, 0, 0));
}
static long c_peek(int fd, Args *a, int gort) {
    return BOTH(recv(fd, a->buf, a->n, MSG_PEEK), gort_recv_until(fd, a->buf, a->n, MSG_PEEK, 0));
}
static long c_trunc(int fd, Args *a, int gort) {
    return BOTH(recv(fd, a->buf, a->n, MSG_TRUNC), gort_recv_until(fd, a->buf, a->n, MSG_TRUNC, 0));
}
static long c_send(int fd, Args *a, int gort) {
    return BOTH(send(fd, a->buf, a->n, 0), gort_send_until(fd, a->buf, a->n, 0, 0));
}
static long c_oob(int fd, Args *a, int gort) {
    return BOTH(recv(fd, a->buf, a->n, MSG_OOB), gort_recv_until(fd, a->buf, a->n, MSG_OOB, 0));
}
static long c_recvfrom(int fd, Args *a, int gort) {
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    return BOTH(recvfrom(fd, a->buf, a->n, 0, (void *)&ss, &len),
                gort_recvfrom_until(fd, a->buf, a->n, 0, (void *)&ss, &len, 0));
}
static long c_sendto(int fd, Args *a, int gort) { /* nobody there */
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return BOTH(sendto(fd, a->buf, a->n, 0, (void *)&in, sizeof in),
                gort_sendto_until(fd, a->buf, a->n, 0, (void *)&in, sizeof in, 0));
}
static long c_readv(int fd, Args *a, int gort) {
    struct iovec v[2] = {{a->buf, a->n / 2}, {a->buf ? a->buf + a->n / 2 : NULL, a->n - a->n / 2}};
    return BOTH(readv(fd, v, 2), gort_readv_until(fd, v, 2, 0));
}
static long c_writev(int fd, Args *a, int gort) {
    struct iovec v[2] = {{a->buf, a->n / 2}, {a->buf ? a->buf + a->n / 2 : NULL, a->n - a->n / 2}};
    return BOTH(writev(fd, v, 2), gort_writev_until(fd, v, 2, 0));
}
static long c_readv_none(int fd, Args *a, int gort) {
    return BOTH(readv(fd, NULL, 0), gort_readv_until(fd, NULL, 0, 0));
}
static long c_writev_none(int fd, Args *a, int gort) {
    return BOTH(writev(fd, NULL, 0), gort_writev_until(fd, NULL, 0, 0));
}
static long c_readv_bad(int fd, Args *a, int gort) {
    static struct iovec many[1025];
    return BOTH(readv(fd, many, 1025), gort_readv_until(fd, many, 1025, 0));
}
static long c_writev_negative(int fd, Args *a, int gort) {
    static volatile int minus = -1;
    struct iovec v = {a->buf, a->n};
    return BOTH(writev(fd, &v, minus), gort_writev_until(fd, &v, minus, 0));
}
static long c_writev_most(int fd, Args *a, int gort) { /* IOV_MAX of them, one byte each */
    static struct iovec v[1024];
    for (int i = 0; i < 1024; i++) v[i] = (struct iovec){a->buf, a->buf && a->n ? 1 : 0};
    return BOTH(writev(fd, v, 1024), gort_writev_until(fd, v, 1024, 0));
}
static long c_recvmsg(int fd, Args *a, int gort) {
    struct iovec v = {a->buf, a->n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    return BOTH(recvmsg(fd, &m, 0), gort_recvmsg_until(fd, &m, 0, 0));
}
static long c_sendmsg(int fd, Args *a, int gort) {
    struct iovec v = {a->buf, a->n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    return BOTH(sendmsg(fd, &m, 0), gort_sendmsg_until(fd, &m, 0, 0));
}
static long c_accept(int fd, Args *a, int gort) {
    return BOTH(accept(fd, NULL, NULL), gort_accept_until(fd, NULL, NULL, 0));
}
static long c_connect_bad(int fd, Args *a, int gort) { /* too short an address */
    struct sockaddr_in in = {.sin_family = AF_INET};
    return BOTH(connect(fd, (void *)&in, 1), gort_connect_until(fd, (void *)&in, 1, 0));
}
static long c_pread(int fd, Args *a, int gort) {
    return BOTH(pread(fd, a->buf, a->n, 2), gort_pread(fd, a->buf, a->n, 2));
}
static long c_pread_end(int fd, Args *a, int gort) {
    return BOTH(pread(fd, a->buf, a->n, 1 << 20), gort_pread(fd, a->buf, a->n, 1 << 20));
}
static long c_pread_far(int fd, Args *a, int gort) {
    return BOTH(pread(fd, a->buf, a->n, INT64_MAX), gort_pread(fd, a->buf, a->n, INT64_MAX));
}
static long c_pread_negative(int fd, Args *a, int gort) {
    return BOTH(pread(fd, a->buf, a->n, -1), gort_pread(fd, a->buf, a->n, -1));
}
static long c_pwrite(int fd, Args *a, int gort) {
    return BOTH(pwrite(fd, a->buf, a->n, 2), gort_pwrite(fd, a->buf, a->n, 2));
}
static long c_pwrite_negative(int fd, Args *a, int gort) {
    return BOTH(pwrite(fd, a->buf, a->n, -7), gort_pwrite(fd, a->buf, a->n, -7));
}
static long c_fsync(int fd, Args *a, int gort) { return BOTH(fsync(fd), gort_fsync(fd)); }
static long c_close(int fd, Args *a, int gort) { return BOTH(close(fd), gort_close(fd)); }

static const struct {
    const char *name;
    call_fn *call;
} calls[] = {{"read", c_read},
             {"write", c_write},
             {"recv", c_recv},
             {"recv PEEK", c_peek},
             {"recv TRUNC", c_trunc},
             {"recv OOB", c_oob},
             {"send", c_send},
             {"recvfrom", c_recvfrom},
             {"sendto", c_sendto},
             {"readv", c_readv},
             {"writev", c_writev},
             {"readv of none", c_readv_none},
             {"writev of none", c_writev_none},
             {"readv of too many", c_readv_bad},
             {"writev of -1", c_writev_negative},
             {"writev of most", c_writev_most},
             {"recvmsg", c_recvmsg},
             {"sendmsg", c_sendmsg},
             {"accept", c_accept},
             {"connect, short", c_connect_bad},
             {"pread", c_pread},
             {"pread behind", c_pread_end},
             {"pread far", c_pread_far},
             {"pread at -1", c_pread_negative},
             {"pwrite", c_pwrite},
             {"pwrite at -7", c_pwrite_negative},
             {"fsync", c_fsync},
             {"close", c_close}};

/* ---- both, compared -------------------------------------------------------------------------- */

enum { ROOM = 70000 };
static const long lengths[] = {0, 1, 4, 8, 512, ROOM, -1 /* more than there can be */,
                               -2 /* a bad pointer */};

static long one(int kind, int call, long length, int gort, char *bytes) {
    Made m = {.fd = -1, .other = -1};
    Args a = {bytes, length == -1 ? SIZE_MAX : length == -2 ? 8 : (size_t)length};
    if (length == -2) a.buf = NULL;
    memset(bytes, 'w', ROOM);
    if (length == 8) memset(bytes, 0, 8); /* an eventfd takes a number */
    kinds[kind].make(&m);
    if (!gort && m.fd >= 0) fcntl(m.fd, F_SETFL, fcntl(m.fd, F_GETFL) | O_NONBLOCK);
    errno = 4321;
    long r = calls[call].call(m.fd, &a, gort);
    if (gort) CHECK_EQ(errno, 4321);
    if (calls[call].call != c_close && m.fd >= 0 && m.fd < 900)
        CHECK_EQ(gort ? gort_close(m.fd) : close(m.fd), 0);
    if (m.other >= 0) close(m.other);
    if (m.path[0]) unlink(m.path);
    return r;
}

/* More than there is memory is sent up to where the memory ends, wherever that is. */
static int sends(call_fn *f) {
    return f == c_send || f == c_sendto || f == c_sendmsg || f == c_writev;
}

static void compare(int kind, int call, long length, char *by_posix, char *by_gort) {
    if (length == -1 && sends(calls[call].call)) return;
    if (length == ROOM && kinds[kind].make == dev_zero) return; /* a signal makes it a short read */
    /* memory that is not there, on purpose: memcheck says so, rightly */
    if (length < 0 && test_valgrind()) return;
    long p = one(kind, call, length, 0, by_posix), g = one(kind, call, length, 1, by_gort);
    if (p == -EAGAIN) p = -ETIMEDOUT;
    CHECKF(p == g, "%s on %s, length %ld: posix %ld, gort %ld", calls[call].name, kinds[kind].name,
           length, p, g);
    CHECKF(memcmp(by_posix, by_gort, ROOM) == 0, "%s on %s, length %ld: other bytes",
           calls[call].name, kinds[kind].name, length);
}

static int all(void) {
    int n = 0;
    char *bytes = malloc(2 * ROOM); /* not thread-local: a goroutine may change threads */
    CHECK(bytes != NULL);
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        for (int c = 0; c < (int)(sizeof calls / sizeof *calls); c++)
            for (int l = 0; l < (int)(sizeof lengths / sizeof *lengths); l++)
                compare(k, c, lengths[l], bytes, bytes + ROOM), n++;
    free(bytes);
    return n;
}

static void *in_thread(void *arg) {
    all();
    return NULL;
}

static int run(int argc, char **argv) {
    pthread_t th;
    int before = count_fds();
    printf("%d calls\n", all());
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(pthread_create(&th, NULL, in_thread, NULL), 0); /* beside a runtime */
    while (pthread_tryjoin_np(th, NULL) != 0) gort_sleep(GORT_MS);
    return 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* for the POSIX side */
    snprintf(dir, sizeof dir, "%s/gort-same.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(dir) != NULL);
    all(); /* without a runtime */
    int r = gort_main(run, argc, argv);
    rmdir(dir);
    return r;
}
