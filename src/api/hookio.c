/*
 * The hook's calls that wait on a descriptor and have no gort_ form. Each is a Call (fdcall.h): one
 * that has begun on a file ends with EBADF when its number becomes another file.
 *
 *   move         the rest of a write or send. Others can see the part that was moved, so the call
 *                began before it: `life` is what the number's note said then (hook/fdhints.h)
 *   accept       O_NONBLOCK is not the hook's to set on a shared socket. So poll(2) is asked, then
 *                the call is announced. If another thread takes the connection, it sleeps a while
 *   read_other,  files that cannot be tried, terminals and devices: likewise
 *   write_other,
 *   read_terminal
 *   read_resume  a read that was made as it is, and slept in that `life` (hook/optimistic.c).
 *                accept, connect and writes go on so too
 *   connect      sets O_NONBLOCK for the moment of the call; counted, so it is this socket's flag
 *   own          a descriptor that the hook opens to wait on it. If the program closes it, with all
 *                numbers it can think of, the wait ends, and the number is its next owner's
 *   epoll        epoll_wait itself is the attempt
 */
#include "api/hookio.h"
#include "api/hookcalls.h"
#include "io/close.h"
#include "io/fdcall.h"
#include "sched/ender.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#define OWN_NUMBERS 100    /* from here on, as the runtime's others */
#define ENDED_BY_MONITOR 1 /* flags of a write */

/* A part was moved while the number was being closed: which file has it is unknown. */
static bool is_lost(const HookMove *v) { return v->done > 0 && v->life == 0; }

/* At first the attempt is the caller's own call: a message goes whole, to its address. in_pieces: a
 * pipe would sleep in the middle, where the runtime's signal wakes it half-way. */
static long move_rest(Call *c, const HookMove *v, bool in_pieces, int64_t deadline) {
    struct iovec some[PIECES], *iov = v->msg->msg_iov;
    struct msghdr msg = *v->msg;
    size_t n = msg.msg_iovlen, all = iov_total(iov, n), done = v->done;
    bool sends = c->attempt == try_sendmsg;
    c->life = v->life;
    if (is_lost(v)) return (long)done;
    do {
        if (done > 0 || in_pieces) {
            msg = (struct msghdr){.msg_iov = some};
            msg.msg_iovlen = pieces_after(iov, n, done, some, in_pieces ? 1 : PIECES);
            if (in_pieces && some[0].iov_len > PIECE) some[0].iov_len = PIECE;
            if (sends) c->flags &= ~MSG_FASTOPEN;
        }
        c->buf = sends ? (void *)&msg : (void *)msg.msg_iov;
        c->n = msg.msg_iovlen;
        long r = call_run(c, deadline);
        if (r <= 0) return done > 0 ? (long)done : r;
        done += (size_t)r;
    } while (done < all && !v->ended); /* an eventfd takes 8 bytes, and that is all */
    return (long)done;
}

long hook_move(const HookMove *v) {
    bool sends = v->flags >= 0;
    Call c = call_of(sends ? try_sendmsg : try_rw, v->fd, DIR_WRITE, NULL, 0);
    c.flags = sends ? v->flags : FILE_VECTOR;
    return move_rest(&c, v, false, v->deadline);
}

/* ---- as it is, once poll(2) has said so ------------------------------------------------------ */

static bool polls(int fd, short events) {
    long r;
    while ((r = fd_poll_now(fd, events)) == -EINTR) {} /* a signal is pending */
    return r != 0;
}

/* The monitor ends an accept whose connection another thread took (hook/optimistic.c), so that it
 * does not keep the socket open for long, and the call queues again. So does a write to an eventfd,
 * which polls writable with room for 1. A read is not ended: some devices always poll ready. */
static NOINLINE long made(const Call *c, long nr, int fd, long a, long b, long d) {
    bool ended = nr == SYS_accept4 || (nr == SYS_writev && c->flags == ENDED_BY_MONITOR);
    return ended ? hot_call(c->m, nr, fd, a, b, d) : sys6(nr, fd, a, b, d, 0, 0);
}

/* With a number of its own, taken while the entry counts the call: a close need not wait for a call
 * asleep in the kernel. If no number is left, it does (call_doze). */
static long announced_by(Call *c, int own, long nr, long a, long b, long d) {
    uint32_t life = kept_life(own);
    if (own >= 0) call_unref(c);
    else call_doze(c);
    c->m = syscall_begin(c->m);
    long r = made(c, nr, own >= 0 ? own : c->fd, a, b, d);
    if (own >= 0) kept_close(own, life);
    c->m = syscall_end(c->m);
    if (own >= 0) call_reref(c);
    else call_rouse(c);
    return r;
}

static long announced(Call *c, long nr, long a, long b, long d) {
    int own = (int)sys6(SYS_fcntl, c->fd, F_DUPFD_CLOEXEC, OWN_NUMBERS, 0, 0, 0);
    long r = announced_by(c, own, nr, a, b, d);
    /* its own number was the last, and accept needs one */
    if (unlikely(r == -EMFILE) && own >= 0 && !call_closed(c)) r = announced_by(c, -1, nr, a, b, d);
    return r;
}

static long try_accept_as(Call *c) {
    if (!polls(c->fd, POLLIN)) return -EAGAIN;
    return announced(c, SYS_accept4, (long)c->sa, (long)c->salen, c->flags);
}

long hook_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags, int64_t deadline,
                 uint32_t life) {
    Call c = {.attempt = try_accept_as, .fd = fd, .dir = DIR_READ, .flags = flags, .life = life};
    c.sa = sa;
    c.salen = len;
    return call_run(&c, deadline);
}

bool hook_in_background(int fd) {
    pid_t front = 0;
    return sys6(SYS_ioctl, fd, TIOCGPGRP, (long)&front, 0, 0, 0) == 0 && front > 0 &&
           front != sys6(SYS_getpgid, 0, 0, 0, 0, 0, 0);
}

/* SIGTTIN or SIGTTOU had a handler, after which the same would come again. */
#define FROM_BACKGROUND (-ERESTART)
static long as_eintr(long r) { return r == FROM_BACKGROUND ? -EINTR : r; }

static long made_as(Call *c) {
    bool reads = c->dir == DIR_READ;
    long r = announced(c, reads ? SYS_readv : SYS_writev, (long)c->buf, (long)c->n, 0);
    if (likely(r != -EINTR)) return r;
    if (c->flags != ENDED_BY_MONITOR) return hook_in_background(c->fd) ? FROM_BACKGROUND : r;
    c->pace = true; /* it polls writable, and has no room for that much */
    return -EAGAIN;
}

static long try_as(Call *c) {
    return polls(c->fd, c->dir == DIR_READ ? POLLIN : POLLOUT) ? made_as(c) : -EAGAIN;
}

/* alen: with so many bytes it is ready, too, for which no edge comes. */
static long try_terminal(Call *c) {
    int there = 0;
    c->pace = true;
    sys6(SYS_ioctl, c->fd, FIONREAD, (long)&there, 0, 0, 0);
    return there >= (int)c->alen || polls(c->fd, POLLIN) ? made_as(c) : -EAGAIN;
}

long hook_read_terminal(int fd, const struct iovec *iov, int n, int64_t deadline, uint32_t least) {
    Call c = call_of(least > 0 ? try_terminal : try_as, fd, DIR_READ, iov, (size_t)n);
    c.alen = least;
    return as_eintr(call_run(&c, deadline));
}

long hook_read_other(int fd, const struct iovec *iov, int n, bool looks) {
    Call c = call_of(try_as, fd, DIR_READ, iov, (size_t)n);
    c.looks = looks;
    return call_run(&c, GORT_FOREVER);
}

/* The file may be a pipe, which can be tried. */
static long try_nowait(Call *c) {
    long r = sys6(SYS_preadv2, c->fd, c->buf, c->n, -1, -1, RWF_NOWAIT);
    return nowait_refused(r) ? try_as(c) : r;
}

long hook_read_resume(int fd, const struct iovec *iov, int n, uint32_t life) {
    Call c = call_of(try_nowait, fd, DIR_READ, iov, (size_t)n);
    c.life = life;
    return as_eintr(call_run(&c, GORT_FOREVER));
}

long hook_write_other(const HookMove *v, bool in_pieces) {
    Call c = call_of(try_as, v->fd, DIR_WRITE, NULL, 0);
    c.flags = v->ended ? ENDED_BY_MONITOR : 0;
    return as_eintr(move_rest(&c, v, in_pieces, GORT_FOREVER));
}

enum { NOT_BEGUN, UNDER_WAY, ENDED };

static long connect_once(Call *c) {
    long flags = sys6(SYS_fcntl, c->fd, F_GETFL, 0, 0, 0, 0);
    if (flags < 0) return flags;
    if (!(flags & O_NONBLOCK)) sys6(SYS_fcntl, c->fd, F_SETFL, flags | O_NONBLOCK, 0, 0, 0);
    long r = sys6(SYS_connect, c->fd, c->sa, c->alen, 0, 0, 0);
    if (!(flags & O_NONBLOCK)) sys6(SYS_fcntl, c->fd, F_SETFL, flags, 0, 0, 0);
    return r;
}

static long try_connect_as(Call *c) {
    if (c->flags == UNDER_WAY) {
        int error = 0;
        socklen_t len = sizeof error;
        if (!polls(c->fd, POLLOUT)) return -EAGAIN;
        c->flags = ENDED;
        long r = sys6(SYS_getsockopt, c->fd, SOL_SOCKET, SO_ERROR, &error, &len, 0);
        return r < 0 ? r : -error;
    }
    long r = connect_once(c);
    /* a unix socket whose peer's backlog is full: no event tells when there is room */
    if (r == -EAGAIN) c->pace = true;
    else c->flags = r == -EINPROGRESS || r == -EALREADY ? UNDER_WAY : ENDED;
    return c->flags == UNDER_WAY ? -EAGAIN : r;
}

long hook_connect(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline,
                  uint32_t life) {
    Call c = {.attempt = try_connect_as, .fd = fd, .dir = DIR_WRITE, .alen = len, .life = life};
    c.sa = (struct sockaddr *)sa;
    long r = call_run(&c, deadline);
    return r != -ETIMEDOUT || c.flags == ENDED ? r : c.flags == UNDER_WAY ? -EINPROGRESS : -EAGAIN;
}

/* ---- a number of the hook's own -------------------------------------------------------------- */

/* `used` is set: from here on a close of it comes by way of gort_close, or its life is over. */
bool hook_own(HookOwn *o) {
    Desc *d = desc_of(o->fd);
    DescNote *note = desc_note_of(o->fd);
    o->life = kept_life(o->fd);
    o->seq = d ? desc_seq(d) : 0;
    if (d != NULL && (note == NULL || (o->life != 0 && note_known(note, o->life)))) return true;
    kept_close(o->fd, o->life);
    return false;
}

static long try_readable(Call *c) { return polls(c->fd, POLLIN) ? 0 : -EAGAIN; }

long hook_own_wait(const HookOwn *o, int64_t deadline) {
    Call c = {.attempt = try_readable, .fd = o->fd, .dir = DIR_READ, .life = o->life};
    c.begun = true;
    c.seq = o->seq;
    return call_run(&c, deadline);
}

void hook_own_close(const HookOwn *o) {
    DescNote *note = desc_note_of(o->fd);
    if (note == NULL || load_rlx(&note->life) == o->life) desc_close(o->fd, o->seq);
}

const int32_t *hook_cause(void) {
    M *m = enter();
    Ender *e = ender_of(self(m));
    leave(m);
    return e && e->ctx ? e->cause : NULL; /* a signal, without ctx, ends calls in the kernel too */
}

static long try_epoll(Call *c) {
    long r = sys6(SYS_epoll_pwait, c->fd, c->buf, c->n, 0, NULL, 0);
    return r == 0 ? -EAGAIN : r;
}

long hook_epoll(int fd, struct epoll_event *events, int max, int64_t deadline) {
    Call c = call_of(try_epoll, fd, DIR_READ, events, (size_t)max);
    long r = call_run(&c, deadline);
    const int32_t *cause = r == -ETIMEDOUT ? hook_cause() : NULL;
    return r != -ETIMEDOUT ? r : cause ? cause_now(cause) : 0;
}
