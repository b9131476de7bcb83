/*
 * recv and send in all their forms, and accept. A socket's timeout shows as the kernel's: EAGAIN.
 *
 * No flag makes one accept non-blocking, and O_NONBLOCK is not the hook's to set on a shared
 * socket. So accept asks poll first (hookio.c has the rest), unless the socket is HOT or its owner
 * set O_NONBLOCK. If another thread takes the connection first, the call sleeps for a moment.
 */
#include "hook/hook_internal.h"

#include <limits.h>
#include <netinet/in.h>

int64_t socket_deadline(int fd, int option) {
    struct timeval tv = {0, 0};
    socklen_t len = sizeof tv;
    if (getsockopt(fd, SOL_SOCKET, option, &tv, &len) != 0 || (tv.tv_sec == 0 && tv.tv_usec == 0))
        return GORT_FOREVER;
    return deadline_after(nanoseconds(tv.tv_sec, tv.tv_usec * GORT_US));
}

/* A connection that the kernel gave up before the deadline stays ETIMEDOUT. */
long timeout_as_again(long r, int64_t deadline) {
    return r == -ETIMEDOUT && deadline <= gort_now() ? -EAGAIN : r;
}

static bool flagged(int flags) { return flags & (MSG_DONTWAIT | MSG_ERRQUEUE); }

/* r: the result of a try. True: the call is to wait. */
static NOINLINE bool would_block(int fd, long r) {
    kind_set_both(fd, KIND_SOCKET);
    return r == -EAGAIN && caller_waits(fd);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static NOINLINE ssize_t recv_wait(int fd, void *buf, size_t n, int flags, struct sockaddr *sa,
                                  socklen_t *len) {
    if (!here() || (len && !readable(len, sizeof *len)))
        return libc(recvfrom)(fd, buf, n, flags, sa, len);
    int64_t deadline = socket_deadline(fd, SO_RCVTIMEO);
    hint_settle(fd);
    long r = staying_until(deadline, gort_recvfrom_until(fd, buf, n, flags, sa, len, deadline));
    return returned(timeout_as_again(r, deadline));
}

HOOK ssize_t recv(int fd, void *buf, size_t n, int flags) {
    if (!runner(recv) || flagged(flags)) return libc(recv)(fd, buf, n, flags);
    if (unlikely(flags & MSG_WAITALL)) return recvfrom(fd, buf, n, flags, NULL, NULL);
    long r = sys(SYS_recvfrom, fd, buf, n, flags | MSG_DONTWAIT, NULL, NULL);
    if (likely(r >= 0) || !would_block(fd, r)) return returned(r);
    return recv_wait(fd, buf, n, flags, NULL, NULL);
}

HOOK ssize_t recvfrom(int fd, void *restrict buf, size_t n, int flags, struct sockaddr *restrict sa,
                      socklen_t *restrict len) {
    if (!runner(recvfrom) || flagged(flags)) return libc(recvfrom)(fd, buf, n, flags, sa, len);
    if (flags & MSG_WAITALL)
        return caller_waits(fd) ? recv_wait(fd, buf, n, flags, sa, len)
                                : libc(recvfrom)(fd, buf, n, flags, sa, len);
    long r = sys(SYS_recvfrom, fd, buf, n, flags | MSG_DONTWAIT, sa, len);
    if (likely(r >= 0) || !would_block(fd, r)) return returned(r);
    return recv_wait(fd, buf, n, flags, sa, len);
}

static bool msg_readable(const struct msghdr *msg) {
    return readable(msg, sizeof *msg) && msg->msg_iovlen <= IOV_MAX &&
           readable(msg->msg_iov, msg->msg_iovlen * sizeof *msg->msg_iov);
}

static NOINLINE ssize_t recvmsg_wait(int fd, struct msghdr *msg, int flags) {
    if (!here() || !msg_readable(msg)) return libc(recvmsg)(fd, msg, flags);
    int64_t deadline = socket_deadline(fd, SO_RCVTIMEO);
    hint_settle(fd);
    long r = staying_until(deadline, gort_recvmsg_until(fd, msg, flags, deadline));
    return returned(timeout_as_again(r, deadline));
}

HOOK ssize_t recvmsg(int fd, struct msghdr *msg, int flags) {
    if (!runner(recvmsg) || flagged(flags)) return libc(recvmsg)(fd, msg, flags);
    if (flags & MSG_WAITALL)
        return caller_waits(fd) ? recvmsg_wait(fd, msg, flags) : libc(recvmsg)(fd, msg, flags);
    long r = sys(SYS_recvmsg, fd, msg, flags | MSG_DONTWAIT, 0, 0, 0);
    if (likely(r >= 0) || !would_block(fd, r)) return returned(r);
    return recvmsg_wait(fd, msg, flags);
}

/* What programs built with _FORTIFY_SOURCE call. */
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
HOOK ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags) {
    if (n > size) __chk_fail();
    return recv(fd, buf, n, flags);
}
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *sa,
                       socklen_t *len);
HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags,
                            struct sockaddr *sa, socklen_t *len) {
    if (n > size) __chk_fail();
    return recvfrom(fd, buf, n, flags, sa, len);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* The kernel raises SIGPIPE for pipes and streams, not for sockets that send messages. */
static bool pipe_signals(const HookMove *v) {
    int type = SOCK_STREAM;
    socklen_t len = sizeof type;
    if (v->flags >= 0 && (v->flags & MSG_NOSIGNAL)) return false;
    return getsockopt(v->fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type == SOCK_STREAM;
}
ssize_t move_result(const HookMove *v, long r) {
    if (r == -EPIPE && pipe_signals(v)) raise(SIGPIPE);
    return returned(timeout_as_again(r, v->deadline));
}

/* The goroutine cannot park, so its thread waits. A call that has sent a part goes on with a number
 * of the hook's own: the caller's may be another file by then. */
static COLD ssize_t send_thread(int fd, const struct msghdr *msg, int flags, size_t done,
                                uint32_t life) {
    const struct iovec *v = msg->msg_iov;
    if (done == 0) return libc(sendmsg)(fd, msg, flags);
    if (msg->msg_iovlen != 1) return (ssize_t)done;
    Own own = own_number(fd, life);
    if (own.fd < 0) return (ssize_t)done;
    ssize_t r = libc(send)(own.fd, (const char *)v->iov_base + done, v->iov_len - done,
                           flags & ~MSG_FASTOPEN);
    own_close(&own);
    return (ssize_t)done + (r > 0 ? r : 0);
}

/* An internet socket that found no free port: the kernel says EAGAIN for that, too, at once. */
static bool has_no_port(int fd) {
    struct sockaddr_in at = {.sin_family = AF_UNSPEC}; /* the port stands there for IPv6 as well */
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 || at.sin_port != 0) return false;
    return at.sin_family == AF_INET || at.sin_family == AF_INET6;
}

/* r bytes were sent in that life of the number, or none: sends the rest, as one call. */
static NOINLINE ssize_t sendmsg_wait(int fd, const struct msghdr *msg, int flags, long r,
                                     uint32_t life) {
    size_t done = r > 0 ? (size_t)r : 0;
    if (done > 0 && (!life_goes_on(fd, life) || !caller_waits(fd))) return r;
    if (msg->msg_name && has_no_port(fd)) return returned(r);
    if (!here()) return send_thread(fd, msg, flags, done, life);
    int64_t deadline = socket_deadline(fd, SO_SNDTIMEO);
    HookMove v = {fd, flags, msg, done, done > 0 ? life : 0, deadline, false};
    if (done == 0) hint_settle(fd);
    return move_result(&v, staying_until(deadline, core->move(&v)));
}

static NOINLINE ssize_t send_wait(int fd, struct iovec iov, int flags, const struct sockaddr *sa,
                                  socklen_t len, long r, uint32_t life) {
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_name = (void *)sa};
    if (sa) msg.msg_namelen = len;
    return sendmsg_wait(fd, &msg, flags, r, life);
}

/* MSG_FASTOPEN has begun a connection in that life of the number, and taken nothing: the message is
 * sent once it is made. Its timeout shows as connect's. */
static COLD ssize_t opened(int fd, const struct msghdr *msg, int flags, uint32_t life) {
    struct msghdr rest = {.msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen};
    rest.msg_control = msg->msg_control;
    rest.msg_controllen = msg->msg_controllen;
    flags &= ~MSG_FASTOPEN;
    if (!caller_waits(fd)) return returned(-EINPROGRESS);
    if (!here()) return libc(sendmsg)(fd, &rest, flags);
    HookMove v = {fd, flags, &rest, 0, life, socket_deadline(fd, SO_SNDTIMEO), false};
    long r = staying_until(v.deadline, core->move(&v));
    if (r != -ETIMEDOUT) return move_result(&v, r);
    return returned(timeout_as_again(r, v.deadline) == r ? r : -EINPROGRESS);
}
static bool opens(long r, int flags) {
    return unlikely(r == -EINPROGRESS) && (flags & MSG_FASTOPEN);
}

HOOK ssize_t send(int fd, const void *buf, size_t n, int flags) {
    if (!runner(send) || flagged(flags)) return libc(send)(fd, buf, n, flags);
    uint32_t life = life_of(fd);
    long r = sys(SYS_sendto, fd, buf, n, flags | MSG_DONTWAIT, NULL, 0);
    if (likely(r == (long)n)) return r;
    if (r < 0 && !would_block(fd, r)) return returned(r);
    return send_wait(fd, (struct iovec){(void *)buf, n}, flags, NULL, 0, r, life);
}

HOOK ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa,
                    socklen_t len) {
    if (!runner(sendto) || flagged(flags)) return libc(sendto)(fd, buf, n, flags, sa, len);
    uint32_t life = life_of(fd);
    long r = sys(SYS_sendto, fd, buf, n, flags | MSG_DONTWAIT, sa, len);
    if (likely(r == (long)n)) return r;
    struct iovec iov = {(void *)buf, n};
    if (opens(r, flags))
        return opened(fd, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1}, flags, life);
    if (r < 0 && !would_block(fd, r)) return returned(r);
    return send_wait(fd, iov, flags, sa, len, r, life);
}

HOOK ssize_t sendmsg(int fd, const struct msghdr *msg, int flags) {
    if (!runner(sendmsg) || flagged(flags)) return libc(sendmsg)(fd, msg, flags);
    uint32_t life = life_of(fd);
    long r = sys(SYS_sendmsg, fd, msg, flags | MSG_DONTWAIT, 0, 0, 0);
    if (opens(r, flags)) return opened(fd, msg, flags, life);
    if (r < 0 && !would_block(fd, r)) return returned(r);
    if (r >= 0 && likely((size_t)r == iov_total(msg->msg_iov, msg->msg_iovlen))) return r;
    return sendmsg_wait(fd, msg, flags, r, life);
}

/* ---- connections ---------------------------------------------------------------------------- */

INLINE int accepted(long conn, int flags) {
    int hints = HINT_BORN | (flags & SOCK_NONBLOCK ? HINT_NONBLOCK : 0);
    return fd_born(conn, WHAT(hints, KIND_SOCKET, KIND_SOCKET));
}

/* The goroutine cannot park. A call that began earlier has a number of the hook's own. */
static COLD int accept_thread(int fd, struct sockaddr *sa, socklen_t *len, int flags,
                              uint32_t life) {
    if (life == 0) return libc(accept4)(fd, sa, len, flags);
    Own own = own_number(fd, life);
    if (own.fd < 0) return (int)returned(own.fd);
    long conn = sys(SYS_accept4, own.fd, sa, len, flags, 0, 0);
    own_close(&own);
    if (conn == -EMFILE && !own.borrowed && life_goes_on(fd, life)) /* own.fd was the last number */
        conn = sys(SYS_accept4, fd, sa, len, flags, 0, 0);
    return accepted(conn, flags);
}

/* life: of the number when a call began that has slept; 0: the call begins here. */
static NOINLINE int accept_wait(int fd, struct sockaddr *sa, socklen_t *len, int flags,
                                uint32_t life) {
    hot_off(fd, DIR_READ);
    if (!caller_waits(fd) || !here()) return accept_thread(fd, sa, len, flags, life);
    hint_settle(fd);
    int64_t deadline = socket_deadline(fd, SO_RCVTIMEO);
    long r = staying_until(deadline, core->accept(fd, sa, len, flags, deadline, life));
    return accepted(timeout_as_again(r, deadline), flags);
}

static COLD int accept_on_again(int fd, struct sockaddr *sa, socklen_t *len, int flags, M *m,
                                uint32_t life) {
    if (!life_goes_on(fd, life)) return (int)returned(-EBADF);
    hot_slept(m, fd, DIR_READ);
    if (handler_ended(socket_deadline(fd, SO_RCVTIMEO) == GORT_FOREVER))
        return (int)returned(-EINTR);
    return accept_wait(fd, sa, len, flags, life);
}

INLINE int accept_now(int fd, struct sockaddr *sa, socklen_t *len, int flags, M *m) {
    uint32_t looks = load_rlx(known.looks), life = life_of(fd);
    long conn = hot_call(m, SYS_accept4, fd, sa, len, flags);
    if (unlikely(conn == -EINTR)) return accept_on_again(fd, sa, len, flags, m, life);
    if (slept(m, looks)) hot_slept(m, fd, DIR_READ);
    return accepted(conn, flags);
}

/* Else accept fails at once, and poll would wait for what never comes. */
static bool accepts(int fd, int flags) {
    int listens = 0;
    socklen_t len = sizeof listens;
    return !(flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

static NOINLINE int accept_ask(int fd, struct sockaddr *sa, socklen_t *len, int flags, M *m) {
    if (!(flags_hint(fd) & HINT_NONBLOCK)) {
        if (poll_fd(fd, POLLIN) == 0 && accepts(fd, flags))
            return accept_wait(fd, sa, len, flags, 0);
        hot_count(fd, DIR_READ);
    }
    return accept_now(fd, sa, len, flags, m);
}

static NOINLINE int accept_hot(int fd, struct sockaddr *sa, socklen_t *len, int flags, M *m) {
    return hot_now(m, fd, DIR_READ) ? accept_now(fd, sa, len, flags, m)
                                    : accept_ask(fd, sa, len, flags, m);
}

INLINE int accept_on(int fd, struct sockaddr *sa, socklen_t *len, int flags, M *m) {
    bool hot = kind_hint(fd, DIR_READ) == KIND_HOT;
    return hot ? accept_hot(fd, sa, len, flags, m) : accept_ask(fd, sa, len, flags, m);
}

HOOK int accept(int fd, struct sockaddr *restrict sa, socklen_t *restrict len) {
    M *m = runner(accept);
    return m ? accept_on(fd, sa, len, 0, m) : libc(accept)(fd, sa, len);
}

HOOK int accept4(int fd, struct sockaddr *restrict sa, socklen_t *restrict len, int flags) {
    M *m = runner(accept4);
    return m ? accept_on(fd, sa, len, flags, m) : libc(accept4)(fd, sa, len, flags);
}
