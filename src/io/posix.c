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
 * kernel gives what is there. ALL_PASSED: descriptors may come with some of the bytes. */
enum { ALL_NOT, ALL_BYTES, ALL_PASSED };

static int waits_for(int fd, int flags) {
    if (!(flags & MSG_WAITALL) || (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE))) return ALL_NOT;
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM) return ALL_NOT;
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX) return ALL_BYTES;
    return flags & MSG_PEEK ? ALL_NOT : ALL_PASSED;
}

#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

/* A message in parts, with ALL_PASSED. As in the kernel, bytes that a descriptor is passed with are
 * the last of a call. Credentials and pidfds, where they were asked for, come with every part and
 * end nothing: those of the last part are told. (The kernel stops before bytes of another.) */
typedef struct Parts {
    Call call;
    struct msghdr *told; /* the program's: what has come */
    bool begun;          /* a part has come */
} Parts;

static size_t control_fds(struct msghdr *msg, int type, int **fds) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != type) continue;
        *fds = (int *)CMSG_DATA(c);
        return (c->cmsg_len - CMSG_LEN(0)) / sizeof **fds;
    }
    return 0;
}

static void close_came(struct msghdr *msg, int type) {
    int *fds;
    for (size_t n = control_fds(msg, type, &fds); n > 0; n--)
        sys6(SYS_close, fds[n - 1], 0, 0, 0, 0, 0);
}

/* One part. It is over where MSG_CTRUNC may stand for a descriptor that found no room. */
static long recv_part(Call *c, struct msghdr *part, int flags) {
    int *fds;
    long r = sys6(SYS_recvmsg, c->fd, part, flags, 0, 0, 0);
    if (r < 0) return r;
    c->passed = control_fds(part, SCM_RIGHTS, &fds) > 0 || (part->msg_flags & MSG_CTRUNC);
    return r;
}

/* Where the program has no room for control data, some of ours shows what has come. */
static long recv_in_own_room(Call *c, struct msghdr *part, int flags) {
    union {
        struct cmsghdr first;
        char bytes[128];
    } room;
    int cloexec = MSG_CMSG_CLOEXEC & ~flags;
    part->msg_control = &room;
    part->msg_controllen = sizeof room;
    long r = recv_part(c, part, flags | cloexec);
    if (r >= 0) {
        close_came(part, SCM_RIGHTS);
        close_came(part, SCM_PIDFD);
        part->msg_flags &= ~cloexec;
        if (part->msg_controllen > 0) part->msg_flags |= MSG_CTRUNC;
    }
    part->msg_control = NULL;
    part->msg_controllen = 0;
    return r;
}

static long try_part(Call *c) {
    Parts *p = container_of(c, Parts, call);
    struct msghdr *part = c->buf;
    int *fds, pidfd = -1, flags = c->flags | MSG_DONTWAIT;
    char byte;
    if (part->msg_control == NULL || part->msg_controllen == 0)
        return recv_in_own_room(c, part, flags);
    if (p->begun) {
        /* At the end of the stream the kernel would write over the control data. */
        long r = sys6(SYS_recvfrom, c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, 0, 0);
        if (r <= 0) return r;
        if (control_fds(p->told, SCM_PIDFD, &fds) > 0) pidfd = *fds;
    }
    long r = recv_part(c, part, flags);
    if (r > 0 && pidfd >= 0) sys6(SYS_close, pidfd, 0, 0, 0, 0, 0);
    return r;
}

static ssize_t recvmsg_passed(int fd, struct msghdr *msg, int flags, int64_t deadline) {
    struct iovec some[PIECES];
    struct msghdr part = *msg;
    const size_t room = msg->msg_control ? msg->msg_controllen : 0;
    Parts p = {.call = call_of(try_part, fd, DIR_READ, &part, 0), .told = msg};
    size_t got = 0;
    p.call.flags = flags;
    while (part.msg_iovlen > 0 || got == 0) {
        long r = call_run(&p.call, deadline);
        if (r < 0) return got > 0 ? (ssize_t)got : r;
        if (got == 0) msg->msg_namelen = part.msg_namelen;
        if (r > 0 || got == 0) {
            msg->msg_controllen = part.msg_controllen;
            msg->msg_flags = part.msg_flags;
        }
        got += (size_t)r;
        if (r == 0 || p.call.passed) break;
        p.begun = true;
        part = (struct msghdr){.msg_iov = some,
                               .msg_iovlen =
                                   pieces_after(msg->msg_iov, msg->msg_iovlen, got, some, PIECES),
                               .msg_control = msg->msg_control,
                               .msg_controllen = room};
    }
    return (ssize_t)got;
}

/* The same for a recv. */
static long try_recv_passed(Call *c) {
    struct iovec iov = {c->buf, c->n < INT_MAX ? c->n : INT_MAX}; /* more than is given at once */
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (c->sa && c->salen) msg.msg_name = c->sa, msg.msg_namelen = *c->salen;
    long r = recv_in_own_room(c, &msg, c->flags | MSG_DONTWAIT);
    if (r >= 0 && c->sa && c->salen) *c->salen = msg.msg_namelen;
    return r;
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

/* The bytes from where the first call stopped. */
static ssize_t recvmsg_rest(Call *c, const struct msghdr *msg, size_t got, int64_t deadline) {
    struct iovec some[PIECES];
    struct msghdr rest = {.msg_iov = some};
    c->buf = &rest;
    while ((rest.msg_iovlen = pieces_after(msg->msg_iov, msg->msg_iovlen, got, some, PIECES))) {
        long r = call_run(c, deadline);
        if (r <= 0) break;
        got += (size_t)r;
    }
    return (ssize_t)got;
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
    return r > 0 && all ? recvmsg_rest(&c, msg, (size_t)r, deadline) : r;
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
