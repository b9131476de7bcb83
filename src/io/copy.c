/*
 * gort_copy: from one descriptor to another, until the end.
 *
 * Pieces go through a buffer. Once one has filled it, and both descriptors allow it, they go
 * through a pipe of our own by splice(2), and are not copied: from the source into the empty pipe,
 * then all of it to the destination. Each step is a Call on one descriptor of the program's, so
 * closing, waiting and contexts are as in any other call.
 *
 *   splice is for   streams of sockets that are O_NONBLOCK (no flag of splice's is for them), pipes
 *                   (SPLICE_F_NONBLOCK), and regular files, for which the P is handed off
 *   and not for     two files, a file with O_APPEND, devices
 *
 * Where the kernel refuses, the buffer goes on with what is in the pipe, and stays. splice(2)
 * raises SIGPIPE for sockets, and has no flag against it: the signal is blocked meanwhile.
 *
 * The buffer and the pipe belong to the FdCopy, whose hook gives them back should the runtime end.
 */
#include "io/fdcall.h"
#include "os/ownfd.h"
#include "sched/ender.h"
#include "sched/goexit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define COPY_ROOM 65536
#define PIPE_ROOM (4 * COPY_ROOM) /* asked for; else the kernel's usual 64 KB */

enum { NO_SPLICE, SPLICE_FILE, SPLICE_PIPE, SPLICE_SOCKET };

typedef struct FdCopy {
    ExitHook hook;
    Call in, out;
    char *buf;
    OwnFd pipe[2]; /* to read, to write */
    uint8_t kind[DIRS];
    bool refused; /* no splice any more */
} FdCopy;

/* ---- what it owns --------------------------------------------------------------------------- */

/* In a section. */
static void copy_give_back(ExitHook *h) {
    FdCopy *k = container_of(h, FdCopy, hook);
    own_fd_close(&k->pipe[0]);
    own_fd_close(&k->pipe[1]);
    os_unmap(k->buf, COPY_ROOM);
}

static int copy_begin(FdCopy *k) {
    M *m = enter();
    k->buf = os_map(COPY_ROOM, false);
    if (k->buf) {
        k->hook = (ExitHook){.abandon = copy_give_back};
        exit_hook_push(self(m), &k->hook);
    }
    leave(m);
    return k->buf ? 0 : -ENOMEM;
}

static void copy_end(FdCopy *k) {
    M *m = enter();
    exit_hook_pop(self(m), &k->hook);
    copy_give_back(&k->hook);
    leave(m);
}

/* A context in use ends a copy that never waits, too. */
static int copy_is_over(void) {
    M *m = enter();
    int cause = use_cause(m);
    leave(m);
    return cause;
}

static bool copy_open_pipe(FdCopy *k) {
    int fds[2];
    M *m = enter();
    bool done = sys6(SYS_pipe2, fds, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) == 0;
    for (int i = 0; done && i < 2; i++) k->pipe[i] = own_fd(os_fd_away(fds[i]));
    if (done) sys6(SYS_fcntl, own_fd_number(&k->pipe[0]), F_SETPIPE_SZ, PIPE_ROOM, 0, 0, 0);
    leave(m);
    return done;
}

/* ---- splice --------------------------------------------------------------------------------- */

static long status_flags(int fd) { return sys6(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0); }
static bool is_nonblocking(int fd) {
    long flags = status_flags(fd);
    return flags >= 0 && (flags & O_NONBLOCK);
}

static int splice_kind(int fd, int dir) {
    struct stat st;
    if (sys6(SYS_fstat, fd, &st, 0, 0, 0, 0) < 0) return NO_SPLICE;
    if (S_ISFIFO(st.st_mode)) return SPLICE_PIPE;
    if (S_ISREG(st.st_mode))
        return dir == DIR_WRITE && (status_flags(fd) & O_APPEND) ? NO_SPLICE : SPLICE_FILE;
    bool stream = S_ISSOCK(st.st_mode) && socket_option(fd, SO_TYPE) == SOCK_STREAM;
    return stream && is_nonblocking(fd) ? SPLICE_SOCKET : NO_SPLICE;
}

static bool copy_can_splice(FdCopy *k) {
    if (k->refused || k->pipe[0].number) return !k->refused;
    k->kind[DIR_READ] = (uint8_t)splice_kind(k->in.fd, DIR_READ);
    k->kind[DIR_WRITE] = (uint8_t)splice_kind(k->out.fd, DIR_WRITE);
    bool files = k->kind[DIR_READ] == SPLICE_FILE && k->kind[DIR_WRITE] == SPLICE_FILE;
    k->refused = files || !k->kind[DIR_READ] || !k->kind[DIR_WRITE] || !copy_open_pipe(k);
    return !k->refused;
}

static bool splice_refused(long r) { return r == -EINVAL || nowait_refused(r); }

static long splice_call(int from, int to, size_t n, int flags) {
    return sys6(SYS_splice, from, NULL, to, NULL, n, flags);
}

static long splice_quietly(int from, int to, size_t n) {
    uint64_t signal = (uint64_t)1 << (SIGPIPE - 1), mask = 0;
    struct timespec none = {0, 0};
    sys6(SYS_rt_sigprocmask, SIG_BLOCK, &signal, &mask, sizeof mask, 0, 0);
    long r = splice_call(from, to, n, SPLICE_F_NONBLOCK);
    if (r == -EPIPE && !(mask & signal))
        sys6(SYS_rt_sigtimedwait, &signal, NULL, &none, sizeof signal, 0, 0);
    sys6(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask, 0, 0);
    return r;
}

/* As file_sleep. */
static long splice_asleep(Call *c, int from, int to, size_t n) {
    call_doze(c);
    store_rlx(&c->m->numbered, SYS_splice);
    M *m = block_begin(c->m);
    long r = splice_call(from, to, n, 0);
    store_rlx(&m->numbered, 0);
    c->m = block_end(m);
    call_rouse(c);
    return r;
}

static long try_splice(Call *c, const FdCopy *k, int from, int to) {
    uint8_t kind = k->kind[c->dir];
    if (from < 0 || to < 0) return -EOPNOTSUPP; /* the program has closed our pipe */
    if (kind == SPLICE_FILE) return splice_asleep(c, from, to, c->n);
    if (kind == SPLICE_PIPE) return splice_call(from, to, c->n, SPLICE_F_NONBLOCK);
    if (!is_nonblocking(c->fd)) return -EOPNOTSUPP;
    long r = c->dir == DIR_READ ? splice_call(from, to, c->n, SPLICE_F_NONBLOCK)
                                : splice_quietly(from, to, c->n);
    c->looks = r == -EAGAIN && c->dir == DIR_WRITE && !load_rlx(&c->d->tcp); /* as note_sent */
    return r;
}

static long try_splice_in(Call *c) {
    FdCopy *k = container_of(c, FdCopy, in);
    return try_splice(c, k, c->fd, own_fd_number(&k->pipe[1]));
}

static long try_splice_out(Call *c) {
    FdCopy *k = container_of(c, FdCopy, out);
    return try_splice(c, k, own_fd_number(&k->pipe[0]), c->fd);
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* Each gives the bytes that it moved, 0 at the end, or -errno. */

static long copy_read(FdCopy *k, attempt_fn *attempt, size_t n) {
    k->in.attempt = attempt;
    k->in.plain = attempt == try_rw;
    k->in.buf = k->buf;
    k->in.n = n;
    return call_run(&k->in, GORT_FOREVER);
}

static long copy_write(FdCopy *k, size_t n) {
    k->out.attempt = try_rw;
    k->out.buf = k->buf;
    k->out.n = n;
    return move_all(&k->out, GORT_FOREVER);
}

static long copy_by_buffer(FdCopy *k) {
    long n = copy_read(k, try_rw, COPY_ROOM);
    return n <= 0 ? n : copy_write(k, (size_t)n);
}

/* What is in the pipe, by the buffer. */
static long copy_drain(FdCopy *k, size_t left) {
    while (left > 0) {
        int fd = own_fd_number(&k->pipe[0]);
        long n = fd < 0 ? -EBADF : sys6(SYS_read, fd, k->buf, COPY_ROOM, 0, 0, 0);
        if (n == -EINTR) continue;
        if (n == 0) n = -EBADF;
        if (n > 0) n = copy_write(k, (size_t)n);
        if (n < 0) return n;
        left -= (size_t)n;
    }
    return 0;
}

static long copy_by_pipe(FdCopy *k) {
    long n = copy_read(k, try_splice_in, PIPE_ROOM), r = 0;
    if (splice_refused(n)) {
        k->refused = true;
        return copy_by_buffer(k);
    }
    for (long left = n; left > 0; left -= r) {
        k->out.attempt = try_splice_out;
        k->out.n = (size_t)left;
        r = call_run(&k->out, GORT_FOREVER);
        if (r == 0 || splice_refused(r)) {
            k->refused = true;
            r = copy_drain(k, (size_t)left);
            return r < 0 ? r : n;
        }
        if (r < 0) return r;
    }
    return n;
}

static ssize_t copy_all(FdCopy *k) {
    ssize_t done = 0;
    bool full = false;
    for (;;) {
        long n = full && copy_can_splice(k) ? copy_by_pipe(k) : copy_by_buffer(k);
        if (n <= 0) return n < 0 ? n : done;
        done += n;
        full |= n == COPY_ROOM;
        int over = copy_is_over();
        if (over) return over;
    }
}

EXPORT ssize_t gort_copy(int dst, int src) {
    if (in_forked_child()) return -ENOTCONN;
    FdCopy k = {.in = call_of(try_rw, src, DIR_READ, NULL, 0)};
    k.out = call_of(try_rw, dst, DIR_WRITE, NULL, 0);
    int r = copy_begin(&k);
    if (r < 0) return r;
    ssize_t n = copy_all(&k);
    copy_end(&k);
    return n;
}
