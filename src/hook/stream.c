/*
 * read, write, readv, writev on whatever the descriptor is.
 *
 * A first try that cannot block; where it would, and the caller has not set O_NONBLOCK, the
 * goroutine parks. A write that waits moves everything, as libc's does; one whose timeout passes,
 * or that meets an error, after it has moved some returns that count.
 */
#include "inside.h"

#include <sys/stat.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define PIECE 4096 /* PIPE_BUF */

/* Called as it is. Where it took so long that the P is gone, the hint may have been wrong. */
static NOINLINE void look_again(int fd) {
    kind_set_both(fd, KIND_UNKNOWN);
    flags_take(fd, HINT_NONBLOCK);
    core_pass();
}
INLINE ssize_t plain_result(M *m, int fd, long r) {
    if (unlikely(load_rlx(&m->attn) & ATTN_TAKEN)) look_again(fd);
    return returned(r);
}

/* A descriptor that is not open for it never becomes ready: the call says EBADF at once. */
static bool open_for(int fd, short events) {
    long mode = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_ACCMODE;
    return mode != (events == POLLIN ? O_WRONLY : O_RDONLY);
}

/* What cannot be tried is asked by poll(2); should another have been faster, a thread blocks. */
static void wait_ready(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    if (poll_many(&p, 1) != 0 || !waits(fd) || !open_for(fd, events)) return;
    Stay s;
    stay(&s);
    gort_poll(&p, 1, -1);
    stay_end(&s);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* -errno; -EAGAIN: it would block; -EOPNOTSUPP: it is of another kind. */
INLINE long try_read(int fd, int kind, const struct iovec *iov, int n) {
    if (kind != KIND_SOCKET) {
        long r = sys(SYS_preadv2, fd, iov, n, -1, -1, RWF_NOWAIT);
        if (likely(r >= 0)) hot_count(fd, READING);
        else if (r == -EAGAIN) hot_off(fd, READING);
        return unlikely(r == -ENOSYS) ? -EOPNOTSUPP : r;
    }
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    long r = n == 1 ? sys(SYS_recvfrom, fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT, NULL, NULL)
                    : sys(SYS_recvmsg, fd, &msg, MSG_DONTWAIT, 0, 0, 0);
    return unlikely(r == -ENOTSOCK) ? -EOPNOTSUPP : r;
}

static NOINLINE ssize_t read_wait(int fd, int kind, const struct iovec *iov, int n) {
    if (!waits(fd)) {
        set_errno(EAGAIN);
        return -1;
    }
    int64_t deadline = kind == KIND_SOCKET ? socket_deadline(fd, SO_RCVTIMEO) : GORT_FOREVER;
    Stay s;
    stay(&s);
    ssize_t r = n == 1 ? gort_read_until(fd, iov->iov_base, iov->iov_len, deadline)
                       : gort_readv_until(fd, iov, n, deadline);
    return result(&s, r == -ETIMEDOUT ? -EAGAIN : r);
}

static ssize_t read_other(int fd, const struct iovec *iov, int n) {
    wait_ready(fd, POLLIN);
    return returned(sys(SYS_readv, fd, iov, n, 0, 0, 0));
}

static NOINLINE ssize_t read_look(M *m, int fd, const struct iovec *iov, int n) {
    int kind = kind_look(fd, READING);
    if (kind < 0) return returned(kind);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_readv, fd, iov, n, 0, 0, 0));
    long r = try_read(fd, kind, iov, n);
    if (r == -EAGAIN) return read_wait(fd, kind, iov, n);
    if (r != -EOPNOTSUPP) return returned(r);
    kind_set(fd, READING, KIND_OTHER);
    return read_other(fd, iov, n);
}

INLINE ssize_t read_any(M *m, int fd, int kind, const struct iovec *iov, int n) {
    if (unlikely(kind == KIND_OTHER)) return read_other(fd, iov, n);
    if (unlikely(kind == KIND_UNKNOWN)) return read_look(m, fd, iov, n);
    long r = try_read(fd, kind, iov, n);
    if (likely(r >= 0)) return r;
    if (r == -EAGAIN) return read_wait(fd, kind, iov, n);
    return r == -EOPNOTSUPP ? read_look(m, fd, iov, n) : returned(r);
}

/* As it is. -EINTR: it waited after all, and a goroutine's call is not interrupted. */
INLINE long read_hot(M *m, int fd, void *buf, size_t n) {
    uint32_t looks = load_rlx(known.looks);
    long r = sys(SYS_read, fd, buf, n, 0, 0, 0);
    hot_done(m, fd, READING, looks);
    return r;
}

static NOINLINE ssize_t read_again(int fd, void *buf, size_t n) {
    struct iovec iov = {buf, n};
    return read_look(here(), fd, &iov, 1);
}

HOOK ssize_t read(int fd, void *buf, size_t n) {
    M *m = here();
    if (m == NULL || n == 0) return libc(read)(fd, buf, n);
    int kind = kind_hint(fd, READING);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_read, fd, buf, n, 0, 0, 0));
    if (kind == KIND_HOT && hot_now(m, fd, READING)) {
        long r = read_hot(m, fd, buf, n);
        return likely(r != -EINTR) ? returned(r) : read_again(fd, buf, n);
    }
    struct iovec iov = {buf, n};
    return read_any(m, fd, kind, &iov, 1);
}

HOOK ssize_t readv(int fd, const struct iovec *iov, int n) {
    M *m = here();
    if (m == NULL || n <= 0) return libc(readv)(fd, iov, n);
    int kind = kind_hint(fd, READING);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_readv, fd, iov, n, 0, 0, 0));
    return read_any(m, fd, kind, iov, n);
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t size) {
    if (n > size) __chk_fail();
    return read(fd, buf, n);
}

/* ---- writing -------------------------------------------------------------------------------- */

INLINE long try_write(int fd, int kind, const struct iovec *iov, int n) {
    if (kind != KIND_SOCKET) {
        long r = sys(SYS_pwritev2, fd, iov, n, -1, -1, RWF_NOWAIT);
        if (likely(r >= 0)) hot_count(fd, WRITING);
        else if (r == -EAGAIN) hot_off(fd, WRITING);
        return unlikely(r == -ENOSYS) ? -EOPNOTSUPP : r;
    }
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    long r = n == 1 ? sys(SYS_sendto, fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT, NULL, 0)
                    : sys(SYS_sendmsg, fd, &msg, MSG_DONTWAIT, 0, 0, 0);
    return unlikely(r == -ENOTSOCK) ? -EOPNOTSUPP : r;
}

/* What is left of iov after `done` bytes, piece by piece, until all is moved. */
static ssize_t write_rest(int fd, const struct iovec *iov, int n, size_t done, int64_t deadline) {
    size_t skip = done;
    for (int i = 0; i < n; i++) {
        size_t at = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        skip -= at;
        while (at < iov[i].iov_len) {
            ssize_t r = gort_write_until(fd, (char *)iov[i].iov_base + at, iov[i].iov_len - at, deadline);
            if (r < 0) return done > 0 ? (ssize_t)done : r == -ETIMEDOUT ? -EAGAIN : r;
            at += (size_t)r;
            done += (size_t)r;
        }
    }
    return (ssize_t)done;
}

static size_t total(const struct iovec *iov, int n) {
    size_t sum = 0;
    for (int i = 0; i < n; i++) sum += iov[i].iov_len;
    return sum;
}

/* done: moved by the first try; 0: it would have blocked. A message (a datagram, several pieces)
 * has to go in one. */
static NOINLINE ssize_t write_wait(int fd, int kind, const struct iovec *iov, int n, size_t done) {
    if (!waits(fd)) {
        if (done > 0) return (ssize_t)done;
        set_errno(EAGAIN);
        return -1;
    }
    int64_t deadline = kind == KIND_SOCKET ? socket_deadline(fd, SO_SNDTIMEO) : GORT_FOREVER;
    Stay s;
    stay(&s);
    ssize_t r = 0;
    if (done == 0 && n > 1) r = gort_writev_until(fd, iov, n, deadline);
    if (r >= 0) r = write_rest(fd, iov, n, done + (size_t)r, deadline);
    stay_end(&s);
    if (r == -EPIPE) raise(SIGPIPE); /* gort's calls never do */
    return returned(r == -ETIMEDOUT ? -EAGAIN : r);
}

static bool is_pipe(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* From `done` on, at most so many bytes. */
static long write_piece(int fd, const struct iovec *iov, size_t done, size_t most) {
    for (; done >= iov->iov_len; iov++) done -= iov->iov_len;
    size_t left = iov->iov_len - done;
    return sys(SYS_write, fd, (char *)iov->iov_base + done, left < most ? left : most, 0, 0, 0);
}

/* A pipe that polls writable takes PIECE bytes without blocking, and more it would take with a thread asleep,
 * which a signal of the runtime's may wake half-way. Whatever else comes back with a part goes on with the rest:
 * the caller's call blocks until all is written. */
static ssize_t write_other(int fd, const struct iovec *iov, int n) {
    size_t all = total(iov, n), done = 0;
    if (!waits(fd)) return returned(sys(SYS_writev, fd, iov, n, 0, 0, 0));
    size_t most = all > PIECE && is_pipe(fd) ? PIECE : all;
    do {
        wait_ready(fd, POLLOUT);
        long r = done == 0 && most == all ? sys(SYS_writev, fd, iov, n, 0, 0, 0) : write_piece(fd, iov, done, most);
        if (r <= 0) return done > 0 ? (ssize_t)done : returned(r);
        done += (size_t)r;
    } while (done < all);
    return (ssize_t)done;
}

static NOINLINE ssize_t write_look(M *m, int fd, const struct iovec *iov, int n) {
    int kind = kind_look(fd, WRITING);
    if (kind < 0) return returned(kind);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_writev, fd, iov, n, 0, 0, 0));
    long r = try_write(fd, kind, iov, n);
    if (r == -EAGAIN) return write_wait(fd, kind, iov, n, 0);
    if (r >= 0 && (size_t)r < total(iov, n)) return write_wait(fd, kind, iov, n, (size_t)r);
    if (r != -EOPNOTSUPP) return returned(r);
    kind_set(fd, WRITING, KIND_OTHER);
    return write_other(fd, iov, n);
}

INLINE ssize_t write_any(M *m, int fd, int kind, const struct iovec *iov, int n) {
    if (unlikely(kind == KIND_OTHER)) return write_other(fd, iov, n);
    if (unlikely(kind == KIND_UNKNOWN)) return write_look(m, fd, iov, n);
    long r = try_write(fd, kind, iov, n);
    if (likely(r >= 0 && (size_t)r >= total(iov, n))) return r;
    if (r >= 0 || r == -EAGAIN) return write_wait(fd, kind, iov, n, r < 0 ? 0 : (size_t)r);
    return r == -EOPNOTSUPP ? write_look(m, fd, iov, n) : returned(r);
}

INLINE long write_hot(M *m, int fd, const void *buf, size_t n) {
    uint32_t looks = load_rlx(known.looks);
    long r = sys(SYS_write, fd, buf, n, 0, 0, 0);
    hot_done(m, fd, WRITING, looks);
    return r;
}

static NOINLINE ssize_t write_again(int fd, const void *buf, size_t n) {
    struct iovec iov = {(void *)buf, n};
    return write_look(here(), fd, &iov, 1);
}

HOOK ssize_t write(int fd, const void *buf, size_t n) {
    M *m = here();
    if (m == NULL || n == 0) return libc(write)(fd, buf, n);
    int kind = kind_hint(fd, WRITING);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_write, fd, buf, n, 0, 0, 0));
    if (kind == KIND_HOT && hot_now(m, fd, WRITING)) {
        long r = write_hot(m, fd, buf, n);
        return likely(r != -EINTR) ? returned(r) : write_again(fd, buf, n);
    }
    struct iovec iov = {(void *)buf, n};
    return write_any(m, fd, kind, &iov, 1);
}

HOOK ssize_t writev(int fd, const struct iovec *iov, int n) {
    M *m = here();
    if (m == NULL || n <= 0) return libc(writev)(fd, iov, n);
    int kind = kind_hint(fd, WRITING);
    if (kind == KIND_PLAIN) return plain_result(m, fd, sys(SYS_writev, fd, iov, n, 0, 0, 0));
    return write_any(m, fd, kind, iov, n);
}
