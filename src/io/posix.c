/*
 * The POSIX mirrors: read, write, recv, send, accept, connect and their kin.
 *
 * Each is a Call: an attempt (attempt.c) with its arguments, run by call_run() (wait.c) until it
 * gives something other than "would block". The plain form is the `_until` form without a deadline.
 *
 * MSG_DONTWAIT makes one attempt, and is the only way to see -EAGAIN. MSG_WAITALL on a stream waits
 * for all bytes; a deadline, an error or a close ends it with a part, and shows in the next call.
 */
#include "io/fdcall.h"

static long run_flagged(Call *c, int64_t deadline) {
    return c->flags & MSG_DONTWAIT ? call_nowait(c) : call_run(c, deadline);
}

/* ---- read, write ---------------------------------------------------------------------------- */

EXPORT ssize_t gort_read_until(int fd, void *buf, size_t n, int64_t deadline) {
    Call c = call_of(try_rw, fd, DIR_READ, buf, n);
    c.plain = (ssize_t)n > 0;
    return call_run(&c, deadline);
}

EXPORT ssize_t gort_write_until(int fd, const void *buf, size_t n, int64_t deadline) {
    Call c = call_of(try_rw, fd, DIR_WRITE, buf, n);
    return call_run(&c, deadline);
}

static ssize_t vector_until(int fd, int dir, const struct iovec *iov, int n, int64_t deadline) {
    /* n below 0: too many, as the kernel says */
    Call c = call_of(try_rw, fd, dir, iov, (unsigned)n);
    c.flags = FILE_VECTOR;
    return call_run(&c, deadline);
}

EXPORT ssize_t gort_readv_until(int fd, const struct iovec *iov, int n, int64_t deadline) {
    return vector_until(fd, DIR_READ, iov, n, deadline);
}
EXPORT ssize_t gort_writev_until(int fd, const struct iovec *iov, int n, int64_t deadline) {
    return vector_until(fd, DIR_WRITE, iov, n, deadline);
}

/* One Call for all of it, so that it sees a close in between. */
ssize_t move_all(Call *c, int64_t deadline) {
    size_t n = c->n;
    if (n > SSIZE_MAX) return -EINVAL;
    while (c->n > 0) {
        char *at = c->buf;
        size_t left = c->n;
        long r = call_run(c, deadline);
        if (r < 0) return r;
        if (r == 0 && c->dir == DIR_READ) return -ENODATA;
        c->buf = at + r;
        c->n = left - (size_t)r;
    }
    return (ssize_t)n;
}

EXPORT ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline) {
    Call c = call_of(try_rw, fd, DIR_READ, buf, n);
    c.plain = (ssize_t)n > 0;
    return move_all(&c, deadline);
}

EXPORT ssize_t gort_write_full_until(int fd, const void *buf, size_t n, int64_t deadline) {
    Call c = call_of(try_rw, fd, DIR_WRITE, buf, n);
    return move_all(&c, deadline);
}

/* ---- sockets -------------------------------------------------------------------------------- */

/* What MSG_WAITALL means. Nothing, but on streams; nor for a peek on a unix socket, where the
 * kernel gives what is there. ALL_PASSED: descriptors may come with some of the bytes. (With
 * SO_PASSCRED credentials come with all, and the two are not told apart.) */
enum { ALL_NOT, ALL_BYTES, ALL_PASSED };

static int socket_option(int fd, int option) {
    int value = -1;
    socklen_t len = sizeof value;
    sys6(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &len, 0);
    return value;
}

static int waits_for(int fd, int flags) {
    if (!(flags & MSG_WAITALL) || (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE))) return ALL_NOT;
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM) return ALL_NOT;
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX) return ALL_BYTES;
    if (flags & MSG_PEEK) return ALL_NOT;
    return socket_option(fd, SO_PASSCRED) == 0 ? ALL_PASSED : ALL_BYTES;
}

/* What the call has got, as the program sees it. */
static void tell_part(struct msghdr *msg, const struct msghdr *part, bool first) {
    if (first) msg->msg_namelen = part->msg_namelen;
    msg->msg_controllen = part->msg_controllen;
    msg->msg_flags = part->msg_flags;
}

/* All of msg, with ALL_PASSED. As in the kernel, bytes that a descriptor comes with are the last of
 * a call; without room for it MSG_CTRUNC tells of it. */
static ssize_t recvmsg_passed(int fd, struct msghdr *msg, int flags, int64_t deadline) {
    struct iovec some[PIECES];
    struct msghdr part = *msg;
    const struct msghdr asked = *msg;
    Call c = {.attempt = try_recvmsg, .fd = fd, .dir = DIR_READ, .flags = flags, .buf = &part};
    size_t got = 0;
    while (part.msg_iovlen > 0 || got == 0) {
        long r = call_run(&c, deadline);
        if (r < 0) return got > 0 ? (ssize_t)got : r;
        if (r > 0 || got == 0) tell_part(msg, &part, got == 0);
        got += (size_t)r;
        if (r == 0 || part.msg_controllen > 0 || (part.msg_flags & MSG_CTRUNC)) break;
        part = (struct msghdr){.msg_iov = some,
                               .msg_iovlen =
                                   pieces_after(asked.msg_iov, asked.msg_iovlen, got, some, PIECES),
                               .msg_control = asked.msg_control,
                               .msg_controllen = asked.msg_controllen};
    }
    return (ssize_t)got;
}

/* The rest, on the Call that got `got` bytes. Inline: compact stacks are promised little for it. */
INLINE ssize_t recv_rest(Call *c, void *buf, size_t n, size_t got, int64_t deadline) {
    c->flags &= ~MSG_WAITALL;
    c->sa = NULL;
    c->salen = NULL;
    while (got < n && !c->passed) {
        c->buf = (char *)buf + got;
        c->n = n - got;
        long r = call_run(c, deadline);
        if (r < 0) return got > 0 ? (ssize_t)got : r;
        if (r == 0) break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

static ssize_t peek_all(Call *c, int64_t deadline) {
    c->attempt = try_peek_all;
    ssize_t r = call_run(c, deadline);
    return r < 0 && c->offset > 0 ? (ssize_t)c->offset : r;
}

EXPORT ssize_t gort_recvfrom_until(int fd, void *buf, size_t n, int flags, struct sockaddr *sa,
                                   socklen_t *len, int64_t deadline) {
    int all = waits_for(fd, flags);
    Call c = call_of(try_recv, fd, DIR_READ, buf, n);
    c.plain = flags == 0 && (ssize_t)n > 0;
    c.flags = flags;
    c.sa = sa;
    c.salen = len;
    if (all && (flags & MSG_PEEK)) return peek_all(&c, deadline);
    if (all == ALL_PASSED) c.attempt = try_recv_passed;
    ssize_t r = run_flagged(&c, deadline);
    return r > 0 && all ? recv_rest(&c, buf, n, (size_t)r, deadline) : r;
}

EXPORT ssize_t gort_recv_until(int fd, void *buf, size_t n, int flags, int64_t deadline) {
    return gort_recvfrom_until(fd, buf, n, flags, NULL, NULL, deadline);
}

EXPORT ssize_t gort_sendto_until(int fd, const void *buf, size_t n, int flags,
                                 const struct sockaddr *sa, socklen_t len, int64_t deadline) {
    Call c = call_of(try_send, fd, DIR_WRITE, buf, n);
    c.flags = flags;
    c.sa = (struct sockaddr *)sa;
    c.alen = len;
    return run_flagged(&c, deadline);
}

EXPORT ssize_t gort_send_until(int fd, const void *buf, size_t n, int flags, int64_t deadline) {
    return gort_sendto_until(fd, buf, n, flags, NULL, 0, deadline);
}

/* Piece by piece from where the first call stopped. */
static ssize_t recvmsg_rest(Call *c, struct msghdr *msg, ssize_t got, int64_t deadline) {
    size_t skip = (size_t)got;
    c->attempt = try_recv;
    for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) { /* an int in musl */
        struct iovec *v = &msg->msg_iov[i];
        size_t have = skip < v->iov_len ? skip : v->iov_len;
        skip -= have;
        if (have == v->iov_len) continue;
        ssize_t r = recv_rest(c, v->iov_base, v->iov_len, have, deadline);
        if (r < 0) return got;
        got += r - (ssize_t)have;
        if ((size_t)r < v->iov_len) return got;
    }
    return got;
}

static ssize_t peekmsg_all(Call *c, struct msghdr *msg, int64_t deadline) {
    c->attempt = try_peekmsg_all;
    ssize_t r = call_run(c, deadline), part = c->offset;
    if (r >= 0 || part <= 0) return r;
    c->attempt = try_recvmsg; /* what there is, and what comes with it */
    r = call_nowait(c);
    if (r >= 0) return r;
    msg->msg_namelen = 0;
    msg->msg_controllen = 0;
    msg->msg_flags = 0;
    return part;
}

EXPORT ssize_t gort_recvmsg_until(int fd, struct msghdr *msg, int flags, int64_t deadline) {
    int all = waits_for(fd, flags);
    if (all == ALL_PASSED) return recvmsg_passed(fd, msg, flags, deadline);
    Call c = {.attempt = try_recvmsg, .fd = fd, .dir = DIR_READ, .flags = flags, .buf = msg};
    if (all && (flags & MSG_PEEK)) return peekmsg_all(&c, msg, deadline);
    ssize_t r = run_flagged(&c, deadline);
    return r > 0 && all ? recvmsg_rest(&c, msg, r, deadline) : r;
}

EXPORT ssize_t gort_sendmsg_until(int fd, const struct msghdr *msg, int flags, int64_t deadline) {
    Call c = call_of(try_sendmsg, fd, DIR_WRITE, msg, 0);
    c.flags = flags;
    return run_flagged(&c, deadline);
}

EXPORT int gort_accept_until(int fd, struct sockaddr *sa, socklen_t *len, int64_t deadline) {
    Call c = {.attempt = try_accept, .fd = fd, .dir = DIR_READ, .sa = sa, .salen = len};
    return (int)call_run(&c, deadline);
}

EXPORT int gort_connect_until(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline) {
    Call c = {.attempt = try_connect, .fd = fd, .dir = DIR_WRITE, .alen = len};
    c.sa = (struct sockaddr *)sa;
    return (int)call_run(&c, deadline);
}

/* ---- without a deadline; the most frequent ones: fastsocket.c -------------------------------- */

EXPORT ssize_t gort_readv(int fd, const struct iovec *iov, int n) {
    return vector_until(fd, DIR_READ, iov, n, GORT_FOREVER);
}
EXPORT ssize_t gort_writev(int fd, const struct iovec *iov, int n) {
    return vector_until(fd, DIR_WRITE, iov, n, GORT_FOREVER);
}
EXPORT ssize_t gort_read_full(int fd, void *buf, size_t n) {
    return gort_read_full_until(fd, buf, n, GORT_FOREVER);
}
EXPORT ssize_t gort_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *sa,
                             socklen_t *len) {
    return gort_recvfrom_until(fd, buf, n, flags, sa, len, GORT_FOREVER);
}
EXPORT ssize_t gort_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa,
                           socklen_t len) {
    return gort_sendto_until(fd, buf, n, flags, sa, len, GORT_FOREVER);
}
EXPORT ssize_t gort_recvmsg(int fd, struct msghdr *msg, int flags) {
    return gort_recvmsg_until(fd, msg, flags, GORT_FOREVER);
}
EXPORT ssize_t gort_sendmsg(int fd, const struct msghdr *msg, int flags) {
    return gort_sendmsg_until(fd, msg, flags, GORT_FOREVER);
}
EXPORT int gort_accept(int fd, struct sockaddr *sa, socklen_t *len) {
    return gort_accept_until(fd, sa, len, GORT_FOREVER);
}
EXPORT int gort_connect(int fd, const struct sockaddr *sa, socklen_t len) {
    return gort_connect_until(fd, sa, len, GORT_FOREVER);
}
