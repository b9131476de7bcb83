/*
 * One attempt that cannot block, whatever the descriptor's flags say.
 *
 * O_NONBLOCK belongs to the open file, which other processes may share: set on a terminal or a pipe
 * from a shell it breaks them, and a program may clear it again. So it is the last resort here.
 *
 *   sockets     MSG_DONTWAIT, and MSG_NOSIGNAL for writes
 *   NOWAIT      preadv2/pwritev2 with RWF_NOWAIT: pipes, eventfds, timerfds of newer kernels
 *   the others  Regular files go to file.c. What a shell may have handed to us (0, 1, 2 and their
 *               duplicates): poll(2), then the call with the P handed off, should another process
 *               have been faster. The rest gets O_NONBLOCK, asked for by F_GETFL each time. So do
 *               listening and connecting sockets, whose calls have no flag for it.
 *
 * `mode` remembers the first two per direction. It is a hint: a number that has become another kind
 * of file behind our back answers ENOTSOCK or EOPNOTSUPP, and is looked at again.
 *
 * Drained sockets. A read of a TCP socket that gave less than it asked for has emptied the queue.
 * If no edge was reported since before that read, the next read parks without asking the kernel:
 * whatever came meanwhile is an edge still to be reported, found by the sample in the lock
 * (netpoll.c, step 3). It saves an echo server one system call in three. Three things could leave
 * something to read without a further edge: an end or error reported together with the data
 * (`hung`, set before the count of edges), urgent data (likewise), a boundary (datagrams, passed
 * descriptors). So it is for TCP only, and only without a deadline, which promises an attempt.
 */
#include "io/fdcall.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>

#define KCMP_FILE 0
#define MOST_PIECES 1024 /* IOV_MAX, as the kernel has it */
#define MOST_ABORTED 100
#define SHARED_WRITE 4096 /* what a pipe that polls writable takes without blocking */

static long note_drained(Call *c, long r) {
    desc_note_drained(c->d, c->edges, r, c->n);
    return r;
}

/* ---- what a descriptor is ------------------------------------------------------------------- */

enum { IS_SOCKET, IS_FILE, IS_PIPE, IS_STREAM };

static bool protocol_is_tcp(int fd) { return socket_option(fd, SO_PROTOCOL) == IPPROTO_TCP; }

static void remember_socket(Desc *d, int fd, bool tcp) {
    desc_note(fd);
    store_rlx(&d->tcp, tcp);
    store_rlx(&d->mode[DIR_READ], MODE_SOCKET);
    store_rlx(&d->mode[DIR_WRITE], MODE_SOCKET);
}

/* -errno, or IS_... */
static int what_is(Call *c) {
    struct stat st;
    long r = sys6(SYS_fstat, c->fd, &st, 0, 0, 0, 0);
    if (r < 0) return (int)r;
    if (S_ISSOCK(st.st_mode)) {
        remember_socket(c->d, c->fd, protocol_is_tcp(c->fd));
        return IS_SOCKET;
    }
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode)) return IS_FILE;
    return S_ISFIFO(st.st_mode) ? IS_PIPE : IS_STREAM;
}

/* Perhaps shared with the process that started us: 0, 1, 2, or one of their open files. */
static bool inherited(int fd) {
    if (fd <= 2) return true;
    long pid = os_getpid();
    for (int i = 0; i <= 2; i++)
        if (sys6(SYS_kcmp, pid, pid, KCMP_FILE, fd, i, 0) == 0) return true;
    return false;
}

static int make_nonblocking(int fd) {
    long flags = sys6(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    if (flags < 0) return (int)flags;
    if (likely(flags & O_NONBLOCK)) return 0;
    return (int)sys6(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK, 0, 0, 0);
}

/* A send that is to wait: the end of the socket's own sending side is an edge of TCP's only. */
static long note_sent(Call *c, long r) {
    if (likely(r != -EAGAIN) || load_rlx(&c->d->tcp)) return r;
    bool tcp = protocol_is_tcp(c->fd);
    if (tcp) remember_socket(c->d, c->fd, tcp);
    c->looks = !tcp;
    return r;
}

/* ---- read and write on anything ------------------------------------------------------------- */

static long rw_socket(Call *c) {
    struct iovec *iov = is_vector(c) ? c->buf : NULL;
    int flags = MSG_DONTWAIT | (c->dir == DIR_WRITE ? MSG_NOSIGNAL : 0);
    if (iov == NULL) {
        if (c->dir == DIR_WRITE)
            return note_sent(c, sys6(SYS_sendto, c->fd, c->buf, c->n, flags, NULL, 0));
        if (c->n == 0) return 0; /* as read(2) on a socket; recv(2) would take a datagram */
        return note_drained(c, sys6(SYS_recvfrom, c->fd, c->buf, c->n, flags, NULL, NULL));
    }
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = c->n};
    if (c->dir == DIR_WRITE) return note_sent(c, sys6(SYS_sendmsg, c->fd, &msg, flags, 0, 0, 0));
    return sys6(SYS_recvmsg, c->fd, &msg, flags, 0, 0, 0);
}

/* poll(2) says that the call will not block; if it does, it blocks this thread only. */
static long rw_inherited(Call *c) {
    long r = fd_poll_now(c->fd, poll_events(c->dir));
    if (r <= 0) return r < 0 ? r : -EAGAIN;
    size_t all = c->n;
    if (c->dir == DIR_WRITE && !is_vector(c) && all > SHARED_WRITE) c->n = SHARED_WRITE;
    /* a pinned goroutine must not hand off, and poll(2) has promised */
    r = c->m->pins ? file_call(c, c->dir) : file_sleep(c, c->dir);
    c->n = all;
    return r;
}

static long rw_other(Call *c) {
    if (inherited(c->fd)) return rw_inherited(c);
    int r = make_nonblocking(c->fd);
    return r < 0 ? r : file_call(c, c->dir);
}

/* Finds out what the descriptor is, and remembers it where that spares asking again. */
static long rw_look(Call *c) {
    int is = what_is(c);
    if (is < 0) return is;
    if (is == IS_SOCKET) return rw_socket(c);
    if (is == IS_FILE) return file_run(c, c->dir);
    desc_note(c->fd);
    if (load_rlx(&c->d->mode[c->dir]) == MODE_OTHER) return rw_other(c);
    long r = file_call_nowait(c, c->dir);
    if (nowait_refused(r)) {
        store_rlx(&c->d->mode[c->dir], MODE_OTHER);
        return rw_other(c);
    }
    if (c->n > 0) store_rlx(&c->d->mode[c->dir], MODE_NOWAIT);
    return r;
}

/* No bytes, more than SSIZE_MAX, or an impossible vector. */
static bool rw_is_odd(Call *c) {
    if (!is_vector(c)) return odd_length(c->n);
    const struct iovec *v = c->buf;
    if (c->n > MOST_PIECES || (v == NULL && c->n > 0)) return true;
    for (size_t i = 0; i < c->n; i++)
        if (v[i].iov_len > 0) return false;
    return true;
}

/* Only the kernel knows the answer, which differs from file to file: 0, EINVAL of an eventfd,
 * EISDIR, ENOSPC of /dev/full. It does not block: an empty vector or an impossible length reaches
 * no driver, and files and pipes do not wait where nothing is to be moved. */
static long rw_odd(Call *c) {
    if (is_vector(c) || c->n > 0) return file_call(c, c->dir);
    int is = what_is(c);
    if (is < 0) return is;
    if (is == IS_SOCKET) return rw_socket(c);
    if (is == IS_STREAM) return inherited(c->fd) ? file_call_nowait(c, c->dir) : rw_other(c);
    return file_call(c, c->dir);
}

long try_rw(Call *c) {
    long r;
    if (unlikely(rw_is_odd(c))) return rw_odd(c);
    switch (load_rlx(&c->d->mode[c->dir])) {
    case MODE_SOCKET:
        r = rw_socket(c);
        if (likely(r != -ENOTSOCK)) return r;
        netpoll_distrust();
        break;
    case MODE_NOWAIT:
        r = file_call_nowait(c, c->dir);
        if (likely(!nowait_refused(r))) return r;
        break;
    }
    return rw_look(c);
}

/* A peek takes nothing away, so no edge follows a part of n bytes: paced. r are there. */
static bool peeks_on(Call *c, long r, size_t n) {
    c->offset = r;
    c->pace = r > 0;
    return r > 0 && (size_t)r < n && fd_poll_now(c->fd, POLLRDHUP) == 0;
}

long try_peek_all(Call *c) {
    long r = sys6(SYS_recvfrom, c->fd, c->buf, c->n, (c->flags & ~MSG_WAITALL) | MSG_DONTWAIT,
                  c->sa, c->salen);
    return peeks_on(c, r, c->n) ? -EAGAIN : r;
}

/* The bytes alone, until all are there, and then what comes with them. */
long try_peekmsg_all(Call *c) {
    const struct msghdr *msg = c->buf;
    struct msghdr peek = {.msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen};
    size_t n = 0;
    long r = sys6(SYS_recvmsg, c->fd, &peek, (c->flags & ~MSG_WAITALL) | MSG_DONTWAIT, 0, 0, 0);
    for (size_t i = 0; r > 0 && i < (size_t)msg->msg_iovlen; i++) n += msg->msg_iov[i].iov_len;
    if (peeks_on(c, r, n)) return -EAGAIN;
    return r == -EAGAIN ? r : try_recvmsg(c);
}

/* ---- sockets -------------------------------------------------------------------------------- */

long try_recv(Call *c) {
    long r = sys6(SYS_recvfrom, c->fd, c->buf, c->n, c->flags | MSG_DONTWAIT, c->sa, c->salen);
    if (r == -EAGAIN && load_rlx(&c->d->mode[DIR_READ]) != MODE_SOCKET)
        remember_socket(c->d, c->fd, protocol_is_tcp(c->fd));
    return c->flags == 0 ? note_drained(c, r) : r;
}

/* MSG_FASTOPEN without a cookie of the server's: it connects, and the send waits for that. */
static bool begins_to_connect(Call *c, long r) {
    if (likely(r != -EINPROGRESS) || !(c->flags & MSG_FASTOPEN)) return false;
    c->flags &= ~MSG_FASTOPEN;
    c->opens = true;
    return true;
}

long try_send(Call *c) {
    long r = sys6(SYS_sendto, c->fd, c->buf, c->n, c->flags | MSG_DONTWAIT | MSG_NOSIGNAL, c->sa,
                  c->alen);
    if (unlikely(begins_to_connect(c, r))) {
        c->sa = NULL;
        c->alen = 0;
        return -EAGAIN;
    }
    if (r == -EAGAIN && c->sa) c->pace = true; /* the peer's queue is full: no edge here */
    return note_sent(c, r);
}

long try_recvmsg(Call *c) {
    return sys6(SYS_recvmsg, c->fd, c->buf, c->flags | MSG_DONTWAIT, 0, 0, 0);
}

long try_sendmsg(Call *c) {
    struct msghdr msg = *(struct msghdr *)c->buf;
    if (unlikely(c->opens)) msg.msg_name = NULL, msg.msg_namelen = 0;
    long r = sys6(SYS_sendmsg, c->fd, &msg, c->flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0);
    if (unlikely(begins_to_connect(c, r))) return -EAGAIN;
    if (r == -EAGAIN && msg.msg_name) c->pace = true;
    return note_sent(c, r);
}

/* Skips connections that are gone: one edge stands for all. After MOST_ABORTED it is paced. */
static long accept_next(Call *c) {
    for (int i = 0; i < MOST_ABORTED; i++) {
        long r = sys6(SYS_accept4, c->fd, c->sa, c->salen, SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
        if (r != -ECONNABORTED && !netpoll_more_numbers(r)) return r;
    }
    c->pace = true;
    return -EAGAIN;
}

long try_accept(Call *c) {
    long r = make_nonblocking(c->fd);
    if (r >= 0) r = accept_next(c);
    if (r < 0) return r;
    desc_born((int)r);
    Desc *d = desc_of((int)r);
    if (load_rlx(&c->d->mode[DIR_READ]) != MODE_SOCKET)
        remember_socket(c->d, c->fd, protocol_is_tcp(c->fd));
    if (d) remember_socket(d, (int)r, load_rlx(&c->d->tcp));
    return r;
}

/* The second attempt asks how the first has ended. After a shutdown connect(2) would begin anew. */
static long connect_or_ask(Call *c) {
    int e = c->flags ? socket_option(c->fd, SO_ERROR) : 0;
    if (e == ECONNRESET) return -e;
    long r = sys6(SYS_connect, c->fd, c->sa, c->alen, 0, 0, 0);
    return e > 0 ? -e : r;
}

long try_connect(Call *c) {
    long r = make_nonblocking(c->fd);
    if (r < 0) return r;
    r = connect_or_ask(c);
    if (r == -EAGAIN) c->pace = true; /* unix: the backlog is full, and no edge will come */
    else if (r == -EINPROGRESS || r == -EALREADY) r = -EAGAIN;
    else if (r == -EISCONN && c->flags) r = 0;
    if (r == -EAGAIN && !c->pace) c->flags = 1;
    return r;
}
