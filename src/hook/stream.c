/*
 * read, write, readv, writev on whatever the descriptor is.
 *
 * A first try that cannot block; where it would, and the caller has not set O_NONBLOCK, the
 * goroutine parks. A write that waits moves everything, as libc's does; one whose timeout passes,
 * or that meets an error, after it has moved some returns that count.
 */
#include "inside.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

/* A regular file: short, most of the time. The monitor takes the P if it is not. */
#define ANNOUNCED(call)                                                                            \
    ({                                                                                             \
        Stay s_ = stay();                                                                          \
        gort_enter_syscall();                                                                      \
        long r_ = (call);                                                                          \
        gort_exit_syscall();                                                                       \
        stay_end(s_);                                                                              \
        r_;                                                                                        \
    })

/* poll(2) says that it will not block; should another have been faster, a thread blocks. */
static bool wait_ready(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    return gort_poll(&p, 1, -1) >= 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* -2: it would block; -3: it is of another kind. */
static ssize_t try_read(int fd, int kind, const struct iovec *iov, int n) {
    ssize_t r;
    if (kind == KIND_SOCKET) {
        struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
        r = n == 1 ? libc(recv)(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT)
                   : libc(recvmsg)(fd, &msg, MSG_DONTWAIT);
        if (likely(r >= 0)) return r;
        return errno == ENOTSOCK ? -3 : errno == EAGAIN ? -2 : -1;
    }
    r = preadv2(fd, iov, n, -1, RWF_NOWAIT);
    if (likely(r >= 0)) return r;
    return errno == EOPNOTSUPP || errno == ENOSYS ? -3 : errno == EAGAIN ? -2 : -1;
}

static NOINLINE ssize_t read_wait(int fd, int kind, const struct iovec *iov, int n) {
    if (!waits(fd)) {
        set_errno(EAGAIN);
        return -1;
    }
    int64_t deadline = kind == KIND_SOCKET ? socket_deadline(fd, SO_RCVTIMEO) : GORT_FOREVER;
    Stay s = stay();
    ssize_t r = n == 1 ? gort_read_until(fd, iov->iov_base, iov->iov_len, deadline)
                       : gort_readv_until(fd, iov, n, deadline);
    return result(s, r == -ETIMEDOUT ? -EAGAIN : r);
}

static ssize_t read_other(int fd, const struct iovec *iov, int n) {
    if (waits(fd)) {
        Stay s = stay();
        wait_ready(fd, POLLIN);
        stay_end(s);
    }
    return ANNOUNCED(libc(readv)(fd, iov, n));
}

static NOINLINE ssize_t read_look(int fd, const struct iovec *iov, int n) {
    int kind = kind_look(fd);
    if (kind < 0) return -1;
    if (kind == KIND_FILE) return ANNOUNCED(libc(readv)(fd, iov, n));
    ssize_t r = try_read(fd, kind, iov, n);
    if (r == -2) return read_wait(fd, kind, iov, n);
    if (r != -3) return r;
    kind_set(fd, KIND_OTHER);
    return read_other(fd, iov, n);
}

INLINE ssize_t read_any(int fd, const struct iovec *iov, int n) {
    int kind = kind_hint(fd);
    if (unlikely(kind == KIND_UNKNOWN || kind == KIND_OTHER))
        return kind == KIND_OTHER ? read_other(fd, iov, n) : read_look(fd, iov, n);
    ssize_t r = try_read(fd, kind, iov, n);
    if (likely(r >= -1)) return r;
    return r == -2 ? read_wait(fd, kind, iov, n) : read_look(fd, iov, n);
}

HOOK ssize_t read(int fd, void *buf, size_t n) {
    if (!here() || n == 0) return libc(read)(fd, buf, n);
    if (kind_hint(fd) == KIND_FILE) return ANNOUNCED(libc(read)(fd, buf, n));
    struct iovec iov = {buf, n};
    return read_any(fd, &iov, 1);
}

HOOK ssize_t readv(int fd, const struct iovec *iov, int n) {
    if (!here() || n <= 0) return libc(readv)(fd, iov, n);
    if (kind_hint(fd) == KIND_FILE) return ANNOUNCED(libc(readv)(fd, iov, n));
    return read_any(fd, iov, n);
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
HOOK ssize_t __read_chk(int fd, void *buf, size_t n, size_t size) {
    if (n > size) __chk_fail();
    return read(fd, buf, n);
}

/* ---- writing -------------------------------------------------------------------------------- */

static ssize_t try_write(int fd, int kind, const struct iovec *iov, int n) {
    ssize_t r;
    if (kind == KIND_SOCKET) {
        struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
        r = n == 1 ? libc(send)(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT)
                   : libc(sendmsg)(fd, &msg, MSG_DONTWAIT);
        if (likely(r >= 0)) return r;
        return errno == ENOTSOCK ? -3 : errno == EAGAIN ? -2 : -1;
    }
    r = pwritev2(fd, iov, n, -1, RWF_NOWAIT);
    if (likely(r >= 0)) return r;
    return errno == EOPNOTSUPP || errno == ENOSYS ? -3 : errno == EAGAIN ? -2 : -1;
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
    Stay s = stay();
    ssize_t r = 0;
    if (done == 0 && n > 1) r = gort_writev_until(fd, iov, n, deadline);
    if (r >= 0) r = write_rest(fd, iov, n, done + (size_t)r, deadline);
    stay_end(s);
    if (r == -EPIPE) raise(SIGPIPE); /* gort's calls never do */
    return returned(r == -ETIMEDOUT ? -EAGAIN : r);
}

static ssize_t write_other(int fd, const struct iovec *iov, int n) {
    if (waits(fd)) {
        Stay s = stay();
        wait_ready(fd, POLLOUT);
        stay_end(s);
    }
    return ANNOUNCED(libc(writev)(fd, iov, n));
}

static NOINLINE ssize_t write_look(int fd, const struct iovec *iov, int n) {
    int kind = kind_look(fd);
    if (kind < 0) return -1;
    if (kind == KIND_FILE) return ANNOUNCED(libc(writev)(fd, iov, n));
    ssize_t r = try_write(fd, kind, iov, n);
    if (r == -2) return write_wait(fd, kind, iov, n, 0);
    if (r >= 0 && (size_t)r < total(iov, n)) return write_wait(fd, kind, iov, n, (size_t)r);
    if (r != -3) return r;
    kind_set(fd, KIND_OTHER);
    return write_other(fd, iov, n);
}

INLINE ssize_t write_any(int fd, const struct iovec *iov, int n) {
    int kind = kind_hint(fd);
    if (unlikely(kind == KIND_UNKNOWN || kind == KIND_OTHER))
        return kind == KIND_OTHER ? write_other(fd, iov, n) : write_look(fd, iov, n);
    ssize_t r = try_write(fd, kind, iov, n);
    if (likely(r >= 0)) {
        if (likely((size_t)r >= total(iov, n))) return r;
        return write_wait(fd, kind, iov, n, (size_t)r);
    }
    return r == -1 ? r : r == -2 ? write_wait(fd, kind, iov, n, 0) : write_look(fd, iov, n);
}

HOOK ssize_t write(int fd, const void *buf, size_t n) {
    if (!here() || n == 0) return libc(write)(fd, buf, n);
    if (kind_hint(fd) == KIND_FILE) return ANNOUNCED(libc(write)(fd, buf, n));
    struct iovec iov = {(void *)buf, n};
    return write_any(fd, &iov, 1);
}

HOOK ssize_t writev(int fd, const struct iovec *iov, int n) {
    if (!here() || n <= 0) return libc(writev)(fd, iov, n);
    if (kind_hint(fd) == KIND_FILE) return ANNOUNCED(libc(writev)(fd, iov, n));
    return write_any(fd, iov, n);
}
