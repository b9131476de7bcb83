/*
 * Calls that were expected not to wait, and are made as they are (src/hook/optimistic.c): when one
 * waits after all it ends with EBADF as soon as its number is closed, whether its thread sleeps in
 * the kernel still or it waits as a goroutine by then. What it waited on is gone: a listener
 * refuses, a pipe has no reader. A dup2 or dup3 that fails closes nothing, and the call waits on.
 */
#include "hook.h"
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#define WARM 400
static char big[300000];
static struct sockaddr_in at;
static struct sockaddr_un name;
static socklen_t name_len;

typedef struct Waiter {
    int fd, peer, tid, over, err;
    long result;
    void (*make)(struct Waiter *w);
    long (*call)(struct Waiter *w);
    void (*after)(struct Waiter *w); /* the number is closed; NULL: nothing to see */
} Waiter;

/* ---- calls ----------------------------------------------------------------------------------- */

static long c_read(Waiter *w) {
    char b[16];
    return read(w->fd, b, sizeof b);
}
static long c_readv(Waiter *w) {
    char b[16];
    struct iovec iov[2] = {{b, 8}, {b + 8, 8}};
    return readv(w->fd, iov, 2);
}
static long c_write(Waiter *w) { return write(w->fd, big, 8); }
static long c_write_big(Waiter *w) { return write(w->fd, big, sizeof big); }
static long c_writev(Waiter *w) {
    struct iovec iov[2] = {{big, 8}, {big + 8, 8}};
    return writev(w->fd, iov, 2);
}
static long c_accept(Waiter *w) { return accept(w->fd, NULL, NULL); }
static long c_connect(Waiter *w) { return connect(w->fd, (void *)&name, name_len); }

/* ---- on what --------------------------------------------------------------------------------- */

static int tcp(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_GE(s, 0);
    return s;
}
static void listener(Waiter *w) {
    socklen_t n = sizeof at;
    at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    w->fd = tcp();
    CHECK(bind(w->fd, (void *)&at, n) == 0 && listen(w->fd, 100) == 0 &&
          getsockname(w->fd, (void *)&at, &n) == 0);
    for (int i = 0; i < WARM; i++) {
        int s = tcp(), c;
        CHECK_EQ(connect(s, (void *)&at, n), 0);
        CHECK_GE(c = accept(w->fd, NULL, NULL), 0);
        CHECK(close(c) == 0 && close(s) == 0);
    }
}
static void refuses(Waiter *w) {
    int s = tcp();
    CHECK_FAILS(connect(s, (void *)&at, sizeof at), ECONNREFUSED);
    CHECK_EQ(close(s), 0);
}

static void fifo(Waiter *w) { /* hot from the start */
    char path[64];
    snprintf(path, sizeof path, "/tmp/gort-hot-close-%d", getpid());
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_GE(w->fd = open(path, O_RDWR), 0);
    CHECK_GE(w->peer = open(path, O_RDWR), 0);
    CHECK_EQ(unlink(path), 0);
}
static void raw_fill(int fd) {
    int flags = fcntl(fd, F_GETFL);
    CHECK_EQ(syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (syscall(SYS_write, fd, big, 4096) > 0) {}
    CHECK_EQ(syscall(SYS_fcntl, fd, F_SETFL, flags), 0);
}
static void full_fifo(Waiter *w) {
    fifo(w);
    raw_fill(w->fd);
}
static void strange_pipe(Waiter *w) { /* of which the hook has not seen the beginning */
    int e[2];
    char b[8] = {0};
    CHECK_EQ(syscall(SYS_pipe2, e, 0), 0);
    for (int i = 0; i < WARM; i++) CHECK(write(e[1], b, 8) == 8 && read(e[0], b, 8) == 8);
    w->fd = e[0], w->peer = e[1];
}
static void full_strange_pipe(Waiter *w) {
    strange_pipe(w);
    int reader = w->fd;
    w->fd = w->peer, w->peer = reader;
    raw_fill(w->fd);
}
static void has_no_reader(Waiter *w) {
    char b = 0;
    CHECK_FAILS(write(w->peer, &b, 1), EPIPE);
}
static void shared_pipe(Waiter *w) { /* a child has read what the hook counts on */
    int e[2], status;
    CHECK_EQ(pipe(e), 0);
    CHECK_EQ(write(e[1], "0123456789", 10), 10);
    pid_t child = fork();
    if (child == 0) _exit(syscall(SYS_read, e[0], big, 10) == 10 ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    w->fd = e[0], w->peer = e[1];
}
static void full_pipe(Waiter *w) { /* a child has filled it */
    int e[2];
    CHECK_EQ(pipe(e), 0);
    raw_fill(e[1]);
    w->fd = e[1], w->peer = e[0];
}
static void shared_event(Waiter *w) {
    uint64_t n = 1;
    CHECK_GE(w->fd = eventfd(0, 0), 0);
    CHECK_EQ(write(w->fd, &n, 8), 8);
    CHECK_EQ(syscall(SYS_read, w->fd, &n, 8), 8);
}
static void nonblocking_once(Waiter *w) { /* O_NONBLOCK, which a child has taken back */
    strange_pipe(w);
    CHECK_EQ(fcntl(w->fd, F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(syscall(SYS_fcntl, w->fd, F_SETFL, 0), 0);
}
static void crowded(Waiter *w) { /* a peer's backlog is full */
    name = (struct sockaddr_un){.sun_family = AF_UNIX};
    name_len = (socklen_t)(sizeof(sa_family_t) + 1 +
                           (size_t)snprintf(name.sun_path + 1, 64, "gort-hot-close-%d", getpid()));
    CHECK_GE(w->peer = socket(AF_UNIX, SOCK_STREAM, 0), 0);
    CHECK(bind(w->peer, (void *)&name, name_len) == 0 && listen(w->peer, 0) == 0);
    for (int s;;) {
        CHECK_GE(s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), 0);
        int r = connect(s, (void *)&name, name_len);
        CHECK_EQ(close(s), 0);
        if (r != 0) break;
    }
    CHECK_GE(w->fd = socket(AF_UNIX, SOCK_STREAM, 0), 0);
}

/* ---- the scene ------------------------------------------------------------------------------- */

static void caller(void *arg) {
    Waiter *w = arg;
    set(&w->tid, (int)syscall(SYS_gettid));
    w->result = w->call(w);
    w->err = errno;
    set(&w->over, 1);
}

static bool in_kernel(Waiter *w) {
    char path[64], text[64] = "";
    unsigned long first;
    long nr;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", get(&w->tid));
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    if (fd < 0) return false;
    syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return sscanf(text, "%ld %lx", &nr, &first) == 2 && first == (unsigned long)w->fd;
}
static bool parked(void) { return waiting_for("IO wait") > 0; }

static void scene(const Waiter *kind, bool late) {
    Waiter w = *kind;
    w.peer = -1;
    w.make(&w);
    CHECK_EQ(gort_go(caller, &w), 0);
    wait_until(get(&w.tid) != 0);
    wait_until(parked() || (!late && in_kernel(&w)));
    CHECK_FAILS(dup2(900, w.fd), EBADF);
    CHECK_FAILS(dup3(0, w.fd, O_NONBLOCK), EINVAL);
    wait_until(parked());
    CHECK_EQ(close(w.fd), 0);
    wait_until(get(&w.over));
    if (w.result < 0) CHECK_EQ(w.err, EBADF);
    else CHECK(w.call == c_write_big && w.result < (long)sizeof big);
    if (w.after) w.after(&w);
    if (w.peer >= 0) CHECK_EQ(close(w.peer), 0);
}

static int run(int argc, char **argv) {
    static const Waiter kinds[] = {
        {.make = listener, .call = c_accept, .after = refuses},
        {.make = fifo, .call = c_read},
        {.make = fifo, .call = c_readv},
        {.make = fifo, .call = c_write_big},
        {.make = full_fifo, .call = c_write},
        {.make = full_fifo, .call = c_writev},
        {.make = strange_pipe, .call = c_read, .after = has_no_reader},
        {.make = full_strange_pipe, .call = c_write},
        {.make = shared_pipe, .call = c_read, .after = has_no_reader},
        {.make = full_pipe, .call = c_write},
        {.make = shared_event, .call = c_read},
        {.make = nonblocking_once, .call = c_read, .after = has_no_reader},
        {.make = nonblocking_once, .call = c_readv, .after = has_no_reader},
        {.make = crowded, .call = c_connect},
    };
    const char *one = getenv("HOT_CLOSE");
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++)
        for (int late = 0; late < 2; late++)
            if (one == NULL || atoi(one) == i) scene(&kinds[i], late);
    return 0;
}

HOOK_MAIN(run)
