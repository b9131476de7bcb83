/* read, write, readv, writev on any descriptor: first a try that cannot block. If it would, and the
 * caller has not set O_NONBLOCK, the goroutine parks. A write that waits moves all that it can. */
#include "hook/hook_internal.h"

#include <limits.h>
#include <sys/stat.h>

/* A PLAIN call took so long that the P is gone: the hint may be wrong. */
static COLD void plain_slept(int fd) {
    kind_set_both(fd, KIND_UNKNOWN);
    flags_take(fd, HINT_NONBLOCK);
    core_pass();
}
INLINE ssize_t plain_result(M *m, int fd, long r) {
    if (was_taken(m)) plain_slept(fd);
    return returned(r);
}

/* OTHER: asks poll(2). True: the call is to wait. */
static bool not_ready(int fd, short events) {
    int dir = events == POLLIN ? DIR_READ : DIR_WRITE;
    if (poll_fd(fd, events) != 0) {
        hot_count(fd, dir);
        return false;
    }
    hot_off(fd, dir);
    long flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    /* not open for that direction, it never becomes ready: the call says EBADF at once */
    bool opened_for = (flags & O_ACCMODE) != (dir == DIR_READ ? O_WRONLY : O_RDONLY);
    return (flags < 0 || !(flags & O_NONBLOCK)) && opened_for && here();
}

/* One try. -errno; -EAGAIN: it would block; -EOPNOTSUPP: the file is of another kind. */
INLINE long stream_try(int fd, FdKind kind, int dir, const struct iovec *iov, int n) {
    bool reads = dir == DIR_READ;
    if (kind != KIND_SOCKET) {
        long r = sys(reads ? SYS_preadv2 : SYS_pwritev2, fd, iov, n, -1, -1, RWF_NOWAIT);
        if (likely(r >= 0)) hot_count(fd, dir);
        else if (r == -EAGAIN) hot_off(fd, dir);
        pipe_moved(fd, dir, r);
        return unlikely(r == -ENOSYS) ? -EOPNOTSUPP : r;
    }
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    long one = reads ? SYS_recvfrom : SYS_sendto, many = reads ? SYS_recvmsg : SYS_sendmsg;
    long r = n == 1 ? sys(one, fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT, NULL, 0)
                    : sys(many, fd, &msg, MSG_DONTWAIT, 0, 0, 0);
    return unlikely(r == -ENOTSOCK) ? -EOPNOTSUPP : r;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A signalfd shows a thread the signals sent to that thread, and the poller is another: no edge
 * tells of them. The goroutine comes back to its thread to look. */
static bool has_signals(int fd) { return flags_hint(fd) & HINT_SIGNALS; }

static NOINLINE ssize_t read_wait(int fd, FdKind kind, const struct iovec *iov, int n) {
    if (!caller_waits(fd)) return returned(-EAGAIN);
    if (!here()) return libc(readv)(fd, iov, n);
    int64_t deadline = kind == KIND_SOCKET ? socket_deadline(fd, SO_RCVTIMEO) : GORT_FOREVER;
    hint_settle(fd);
    if (unlikely(has_signals(fd))) return returned(staying(core->read_other(fd, iov, n, true)));
    ssize_t r =
        staying_until(deadline, n == 1 ? gort_read_until(fd, iov->iov_base, iov->iov_len, deadline)
                                       : gort_readv_until(fd, iov, n, deadline));
    pipe_moved(fd, DIR_READ, r);
    return returned(timeout_as_again(r, deadline));
}

ssize_t vector_on_thread(long nr, int fd, const struct iovec *iov, int n, uint32_t life) {
    Own own = own_number(fd, life);
    if (own.fd < 0) return returned(own.fd);
    long r = sys(nr, own.fd, iov, n, 0, 0, 0);
    own_close(&own);
    return returned(r);
}

/* A call that was made as it is, in that life, was interrupted, and goes on as a goroutine's. On a
 * file that waits for nothing (a slow disk) it is made again. */
static COLD ssize_t read_resume(int fd, const struct iovec *iov, int n, uint32_t life) {
    FdKind kind = kind_look(fd, DIR_READ);
    if (!life_goes_on(fd, life)) return returned(-EBADF);
    if (handler_ended(true)) return returned(-EINTR);
    if (terminal_at(fd)) return terminal_read(fd, iov, n);
    if (kind == KIND_PLAIN || !here()) return vector_on_thread(SYS_readv, fd, iov, n, life);
    hint_settle(fd);
    long r = staying(core->read_resume(fd, iov, n, life));
    pipe_moved(fd, DIR_READ, r);
    return returned(r);
}

static ssize_t read_other(M *m, int fd, const struct iovec *iov, int n) {
    if (terminal_at(fd)) return terminal_read(fd, iov, n);
    if (not_ready(fd, POLLIN))
        return returned(staying(core->read_other(fd, iov, n, has_signals(fd))));
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_readv, fd, iov, n, 0);
    return r == -EINTR ? read_resume(fd, iov, n, life) : returned(r);
}

static COLD ssize_t read_look(M *m, int fd, const struct iovec *iov, int n) {
    FdKind kind = kind_look(fd, DIR_READ);
    if (kind == KIND_CLOSED) return -1;
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_readv, fd, iov, n, 0, 0, 0));
    bool tries = !terminal_at(fd);
    long r = tries ? stream_try(fd, kind, DIR_READ, iov, n) : -EOPNOTSUPP;
    if (r == -EAGAIN) return read_wait(fd, kind, iov, n);
    if (r != -EOPNOTSUPP) return returned(r);
    kind_set(fd, DIR_READ, KIND_OTHER);
    return read_other(m, fd, iov, n);
}

INLINE ssize_t read_any(M *m, int fd, FdKind kind, const struct iovec *iov, int n) {
    if (unlikely(kind == KIND_OTHER)) return read_other(m, fd, iov, n);
    if (unlikely(kind == KIND_UNKNOWN)) return read_look(m, fd, iov, n);
    long r = stream_try(fd, kind, DIR_READ, iov, n);
    if (likely(r >= 0)) return r;
    if (r == -EAGAIN) return read_wait(fd, kind, iov, n);
    return r == -EOPNOTSUPP ? read_look(m, fd, iov, n) : returned(r);
}

/* A call that was made as it is gave an error, or has waited. Never returns -EINTR. */
static COLD ssize_t read_again(M *m, int fd, void *buf, size_t n, long r, bool waited,
                               uint32_t life) {
    struct iovec iov = {buf, n};
    if (r == -EINTR && !life_goes_on(fd, life)) return returned(-EBADF);
    if (waited || r == -EINTR) hot_slept(m, fd, DIR_READ);
    return r == -EINTR ? read_resume(fd, &iov, 1, life) : returned(r);
}

/* Each kind has its own function, so that few cache lines are touched. */
static NOINLINE ssize_t read_as_plain(int fd, void *buf, size_t n, M *m) {
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_read, fd, buf, n, 0);
    return likely(r != -EINTR) ? plain_result(m, fd, r) : read_again(m, fd, buf, n, r, true, life);
}

static NOINLINE ssize_t read_slow(int fd, void *buf, size_t n, M *m) {
    struct iovec iov = {buf, n};
    return read_any(m, fd, kind_hint(fd, DIR_READ), &iov, 1);
}

static NOINLINE ssize_t read_none(int fd, void *buf, size_t n, M *m, long r) {
    struct iovec iov = {buf, n};
    if (r == -EAGAIN) return read_wait(fd, KIND_SOCKET, &iov, 1);
    return r == -ENOTSOCK ? read_look(m, fd, &iov, 1) : returned(r);
}

static NOINLINE ssize_t read_as_socket(int fd, void *buf, size_t n, M *m) {
    long r = sys(SYS_recvfrom, fd, buf, n, MSG_DONTWAIT, NULL, NULL);
    return likely(r >= 0) ? r : read_none(fd, buf, n, m, r);
}

static NOINLINE ssize_t read_as_pipe(int fd, void *buf, size_t n, M *m) {
    if (!pipe_take(fd, n)) return read_slow(fd, buf, n, m);
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_read, fd, buf, n, 0);
    pipe_took(fd, n, r);
    return likely(r >= 0 && !was_taken(m)) ? r : read_again(m, fd, buf, n, r, was_taken(m), life);
}

static NOINLINE ssize_t read_as_event(int fd, void *buf, size_t n, M *m) {
    if (!event_take(fd)) return read_slow(fd, buf, n, m);
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_read, fd, buf, n, 0);
    return likely(r >= 0 && !was_taken(m)) ? r : read_again(m, fd, buf, n, r, was_taken(m), life);
}

static NOINLINE ssize_t read_as_hot(int fd, void *buf, size_t n, M *m) {
    if (!hot_now(m, fd, DIR_READ)) return read_slow(fd, buf, n, m);
    uint32_t looks = load_rlx(known.looks), life = life_of(fd);
    long r = hot_call(m, SYS_read, fd, buf, n, 0);
    bool waited = slept(m, looks);
    return likely(r >= 0 && !waited) ? r : read_again(m, fd, buf, n, r, waited, life);
}

HOOK ssize_t read(int fd, void *buf, size_t n) {
    M *m = runner(read);
    /* 0 bytes: recvfrom would take a message */
    if (m == NULL || (ssize_t)n <= 0) return libc(read)(fd, buf, n);
    FdKind kind = kind_hint(fd, DIR_READ);
    if (kind == KIND_SOCKET) return read_as_socket(fd, buf, n, m);
    if (kind == KIND_PLAIN) return read_as_plain(fd, buf, n, m);
    if (kind == KIND_HOT) return read_as_hot(fd, buf, n, m);
    if (kind == KIND_PIPE) return read_as_pipe(fd, buf, n, m);
    return kind == KIND_EVENT ? read_as_event(fd, buf, n, m) : read_slow(fd, buf, n, m);
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t size) {
    if (n > size) __chk_fail();
    return read(fd, buf, n);
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool is_pipe(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static long write_piece(int fd, const struct iovec *iov, size_t done) {
    for (; done >= iov->iov_len; iov++) done -= iov->iov_len;
    return sys(SYS_write, fd, (char *)iov->iov_base + done, iov->iov_len - done, 0, 0, 0);
}

/* As vector_on_thread, for a call that has moved a part. */
static COLD ssize_t write_thread(int fd, const struct iovec *iov, int n, size_t done,
                                 uint32_t life) {
    size_t all = iov_total(iov, (size_t)n);
    if (done == 0) return returned(sys(SYS_writev, fd, iov, n, 0, 0, 0));
    Own own = own_number(fd, life);
    if (own.fd < 0) return (ssize_t)done;
    for (long r = 1; r > 0 && done < all && life_goes_on(fd, life);) {
        r = write_piece(own.fd, iov, done);
        if (r > 0) done += (size_t)r;
    }
    own_close(&own);
    return (ssize_t)done;
}

/* done: moved by the first try, which began in that life; 0: the try would have blocked. */
static NOINLINE ssize_t write_wait(int fd, FdKind kind, const struct iovec *iov, int n, size_t done,
                                   uint32_t life) {
    if (done > 0 && !life_goes_on(fd, life)) return (ssize_t)done;
    if (!caller_waits(fd)) return done > 0 ? (ssize_t)done : returned(-EAGAIN);
    if (!here()) return write_thread(fd, iov, n, done, life);
    int64_t deadline = kind == KIND_SOCKET ? socket_deadline(fd, SO_SNDTIMEO) : GORT_FOREVER;
    if (done == 0) hint_settle(fd);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    HookMove v = {fd, -1, &msg, done, done > 0 ? life : 0, deadline, false};
    long r = staying_until(deadline, core->move(&v));
    pipe_moved(fd, DIR_WRITE, r - (ssize_t)done);
    return move_result(&v, r);
}

/* As read_resume; nothing was written yet. */
static COLD ssize_t write_resume(int fd, const struct iovec *iov, int n, uint32_t life) {
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    HookMove v = {.fd = fd, .flags = -1, .msg = &msg, .life = life, .deadline = GORT_FOREVER};
    FdKind kind = kind_look(fd, DIR_WRITE);
    bool pipe = is_pipe(fd);
    v.ended = kind == KIND_OTHER && is_eventfd(fd);
    if (!life_goes_on(fd, life)) return returned(-EBADF);
    if (handler_ended(true)) return returned(-EINTR);
    if (kind == KIND_PLAIN || !here()) return vector_on_thread(SYS_writev, fd, iov, n, life);
    hint_settle(fd);
    long r = staying(pipe ? core->move(&v) : core->write_other(&v, false));
    pipe_moved(fd, DIR_WRITE, r);
    return move_result(&v, r);
}

/* A pipe that polls writable takes PIECE bytes without blocking. For more a thread would sleep,
 * which a signal of the runtime's may wake half-way: it is written in pieces. Any other file that
 * takes a part is given the rest: the call blocks until all is written. */
static ssize_t write_other(M *m, int fd, const struct iovec *iov, int n) {
    size_t all = iov_total(iov, (size_t)n);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    HookMove v = {.fd = fd, .msg = &msg};
    bool in_pieces = all > PIECE && is_pipe(fd), parks = not_ready(fd, POLLOUT);
    v.ended = parks && is_eventfd(fd);
    if (!parks && !(in_pieces && caller_waits(fd) && here())) {
        v.life = life_of(fd);
        long r = hot_call(m, SYS_writev, fd, iov, n, 0);
        if (r == -EINTR) return write_resume(fd, iov, n, v.life);
        if (r <= 0 || (size_t)r == all || is_eventfd(fd) || !caller_waits(fd) || !here())
            return returned(r);
        v.done = (size_t)r;
    }
    return returned(staying(core->write_other(&v, in_pieces)));
}

static COLD ssize_t write_look(M *m, int fd, const struct iovec *iov, int n) {
    FdKind kind = kind_look(fd, DIR_WRITE);
    if (kind == KIND_CLOSED) return -1;
    if (kind == KIND_OTHER) return write_other(m, fd, iov, n);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_writev, fd, iov, n, 0, 0, 0));
    uint32_t life = life_of(fd);
    long r = stream_try(fd, kind, DIR_WRITE, iov, n);
    if (r == -EAGAIN) return write_wait(fd, kind, iov, n, 0, 0);
    if (r >= 0 && (size_t)r < iov_total(iov, (size_t)n))
        return write_wait(fd, kind, iov, n, (size_t)r, life);
    if (r != -EOPNOTSUPP) return returned(r);
    kind_set(fd, DIR_WRITE, KIND_OTHER);
    return write_other(m, fd, iov, n);
}

INLINE ssize_t write_any(M *m, int fd, FdKind kind, const struct iovec *iov, int n) {
    if (unlikely(kind == KIND_OTHER)) return write_other(m, fd, iov, n);
    if (unlikely(kind == KIND_UNKNOWN)) return write_look(m, fd, iov, n);
    uint32_t life = life_of(fd);
    long r = stream_try(fd, kind, DIR_WRITE, iov, n);
    if (likely(r >= 0 && (size_t)r >= iov_total(iov, (size_t)n))) return r;
    if (r >= 0 || r == -EAGAIN) return write_wait(fd, kind, iov, n, r < 0 ? 0 : (size_t)r, life);
    return r == -EOPNOTSUPP ? write_look(m, fd, iov, n) : returned(r);
}

/* A call that was made as it is has waited, or a signal ended it early. */
static COLD ssize_t write_short(M *m, int fd, const void *buf, size_t n, long r, bool waited,
                                uint32_t life) {
    struct iovec iov = {(void *)buf, n};
    if (!life_goes_on(fd, life)) return returned(r == -EINTR ? -EBADF : r);
    if (waited || r == -EINTR) hot_slept(m, fd, DIR_WRITE);
    if (r == (long)n) return r;
    if (r == -EINTR) return write_resume(fd, &iov, 1, life);
    return r > 0 && is_pipe(fd) ? write_wait(fd, KIND_NOWAIT, &iov, 1, (size_t)r, life)
                                : returned(r);
}

static NOINLINE ssize_t write_as_plain(int fd, const void *buf, size_t n, M *m) {
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_write, fd, buf, n, 0);
    return likely(r != -EINTR) ? plain_result(m, fd, r) : write_short(m, fd, buf, n, r, true, life);
}

static NOINLINE ssize_t write_slow(int fd, const void *buf, size_t n, M *m) {
    struct iovec iov = {(void *)buf, n};
    return write_any(m, fd, kind_hint(fd, DIR_WRITE), &iov, 1);
}

static NOINLINE ssize_t write_part(int fd, const void *buf, size_t n, M *m, long r, uint32_t life) {
    struct iovec iov = {(void *)buf, n};
    if (r < 0 && r != -EAGAIN) return r == -ENOTSOCK ? write_look(m, fd, &iov, 1) : returned(r);
    return write_wait(fd, KIND_SOCKET, &iov, 1, r < 0 ? 0 : (size_t)r, life);
}

static NOINLINE ssize_t write_as_socket(int fd, const void *buf, size_t n, M *m) {
    uint32_t life = life_of(fd);
    long r = sys(SYS_sendto, fd, buf, n, MSG_DONTWAIT, NULL, 0);
    return likely(r == (long)n) ? r : write_part(fd, buf, n, m, r, life);
}

static NOINLINE ssize_t write_as_pipe(int fd, const void *buf, size_t n, M *m) {
    if (!pipe_room(fd, n) && !((flags_hint(fd) & HINT_ROOM) && hot_now(m, fd, DIR_WRITE)))
        return write_slow(fd, buf, n, m);
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_write, fd, buf, n, 0);
    pipe_put(fd, r);
    bool waited = was_taken(m);
    return likely(r == (long)n && !waited) ? r : write_short(m, fd, buf, n, r, waited, life);
}

static NOINLINE ssize_t write_as_event(int fd, const void *buf, size_t n, M *m) {
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_write, fd, buf, n, 0);
    event_put(fd);
    bool waited = was_taken(m);
    return likely(r == (long)n && !waited) ? r : write_short(m, fd, buf, n, r, waited, life);
}

static NOINLINE ssize_t write_as_hot(int fd, const void *buf, size_t n, M *m) {
    if (!hot_now(m, fd, DIR_WRITE)) return write_slow(fd, buf, n, m);
    uint32_t looks = load_rlx(known.looks), life = life_of(fd);
    long r = hot_call(m, SYS_write, fd, buf, n, 0);
    bool waited = slept(m, looks);
    return likely(r == (long)n && !waited) ? r : write_short(m, fd, buf, n, r, waited, life);
}

HOOK ssize_t write(int fd, const void *buf, size_t n) {
    M *m = runner(write);
    if (m == NULL || (ssize_t)n <= 0) return libc(write)(fd, buf, n);
    FdKind kind = kind_hint(fd, DIR_WRITE);
    if (kind == KIND_SOCKET) return write_as_socket(fd, buf, n, m);
    if (kind == KIND_PLAIN) return write_as_plain(fd, buf, n, m);
    if (kind == KIND_HOT) return write_as_hot(fd, buf, n, m);
    if (kind == KIND_PIPE) return write_as_pipe(fd, buf, n, m);
    return kind == KIND_EVENT ? write_as_event(fd, buf, n, m) : write_slow(fd, buf, n, m);
}

static COLD bool all_empty(const struct iovec *iov, int n) {
    return iov_total(iov, (size_t)n) == 0;
}
/* No bytes, or an error: libc's call. (recvmsg would take a message, sendmsg send one.) */
INLINE bool is_nothing(const struct iovec *iov, int n) {
    if (unlikely((unsigned)n - 1 >= IOV_MAX)) return true;
    if (!readable(iov, (size_t)n * sizeof *iov)) return true;
    return unlikely(iov->iov_len == 0) && all_empty(iov, n);
}

/* nr: readv or writev. */
static NOINLINE ssize_t vector_plain(M *m, int fd, const struct iovec *iov, int n, long nr) {
    uint32_t life = life_of(fd);
    long r = hot_call(m, nr, fd, iov, n, 0);
    if (likely(r != -EINTR)) return plain_result(m, fd, r);
    return nr == SYS_readv ? read_resume(fd, iov, n, life) : write_resume(fd, iov, n, life);
}

HOOK ssize_t readv(int fd, const struct iovec *iov, int n) {
    M *m = runner(readv);
    if (m == NULL || is_nothing(iov, n)) return libc(readv)(fd, iov, n);
    FdKind kind = kind_hint(fd, DIR_READ);
    if (kind == KIND_PLAIN) return vector_plain(m, fd, iov, n, SYS_readv);
    return read_any(m, fd, kind, iov, n);
}

HOOK ssize_t writev(int fd, const struct iovec *iov, int n) {
    M *m = runner(writev);
    if (m == NULL || is_nothing(iov, n)) return libc(writev)(fd, iov, n);
    FdKind kind = kind_hint(fd, DIR_WRITE);
    if (kind == KIND_PLAIN) return vector_plain(m, fd, iov, n, SYS_writev);
    return write_any(m, fd, kind, iov, n);
}
