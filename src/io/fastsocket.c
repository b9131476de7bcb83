/*
 * The short way of a read and a write: on a socket, by a goroutine, without a deadline.
 *
 * An echo is 5 µs of the kernel's work, after which nothing of ours is in the first-level caches,
 * and every `ret` behind the system call is mispredicted. The general way (wait.c) is a thousand
 * instructions in fifteen functions, and parks with a Call and four frames on the stack: nine cache
 * lines that have to come back from memory with each of ten thousand goroutines. Here the same
 * protocol stands in one function, with one frame, and one `ret`, into the program. It is chosen by
 * what the entry says, and these are hints:
 *
 *   a read     the descriptor is a socket (mode), the kernel reports it (registered), nothing but
 *              data was reported so far (hung)
 *   a write    it is a socket; only the attempt is made here
 *
 * Whatever turns out to be otherwise, and whatever is rare, goes the general way from the start, as
 * the same call: it takes the sequence along, so a close since then is found. (A reader that was
 * woken in vain just before loses its place at the front of the queue then.) What could go wrong
 * with a hint that is old: the number has another owner by now. It is a socket: then this was the
 * call to make, and seq is of that owner or the call ends with EBADF. It is none: the kernel says
 * ENOTSOCK. It is not registered: that is looked at again in the entry's lock.
 *
 * A drained socket (attempt.c) is not counted in the entry before it parks: no call is made, and
 * whether the descriptor was closed is asked in the lock, where gort_close retires it.
 */
#include "io/fdcall.h"
#include "base/sysfault.h"

#include <limits.h>
#include <sys/syscall.h>

#define NO_LIFE (~(uint64_t)0) /* the call has not begun */

static bool odd(size_t n) { return n - 1 >= SSIZE_MAX; }

/* As sys6, without a call; so that a system call is followed by one `ret` only. */
INLINE long sys_here(long nr, int fd, const void *buf, size_t n, int flags) {
    if (unlikely(sysfault_on)) return os_sys(nr, fd, (long)buf, (long)n, flags, 0, 0);
    return arch_sys6(nr, fd, (long)buf, (long)n, flags, 0, 0);
}

/* ---- the general way ------------------------------------------------------------------------- */

static NOINLINE long read_slowly(int fd, void *buf, size_t n, attempt_fn *attempt, uint64_t life) {
    Call c = {.attempt = attempt,
              .fd = fd,
              .dir = DIR_READ,
              .plain = (ssize_t)n > 0,
              .buf = buf,
              .n = n,
              .begun = life != NO_LIFE,
              .seq = (uint32_t)life};
    return call_run(&c, GORT_FOREVER);
}

static NOINLINE long write_slowly(int fd, const void *buf, size_t n, attempt_fn *attempt,
                                  uint64_t life) {
    Call c = {.attempt = attempt,
              .fd = fd,
              .dir = DIR_WRITE,
              .buf = (void *)buf,
              .n = n,
              .begun = life != NO_LIFE,
              .seq = (uint32_t)life};
    return call_run(&c, GORT_FOREVER);
}

/* ---- a read ---------------------------------------------------------------------------------- */

enum { READ_AGAIN, READ_CLOSED, READ_SLOWLY };

/* Between two attempts; `edges` was sampled before the last, `again`: to the front of the queue. */
INLINE int wait_to_read(M **m, int fd, Desc *d, uint32_t seq, uint32_t edges, bool again) {
    Waiter w;
    int r = READ_AGAIN;
    lock(&d->lock, RANK_POLL);
    if (unlikely(!desc_lives(d, seq))) r = READ_CLOSED;
    else if (unlikely(!d->registered || d->hung)) r = READ_SLOWLY;
    if (unlikely(r != READ_AGAIN || load_rlx(&d->edges[DIR_READ]) != edges)) {
        unlock(&d->lock);
        return r;
    }
    desc_trust(d, fd);
    desc_wait(*m, d, DIR_READ, &w, again);
    *m = park(*m, &d->lock, WAIT_IO); /* after a close, the next attempt finds another sequence */
    return READ_AGAIN;
}

/* One attempt; -EBADF: closed since the call began. */
INLINE long socket_ask(M *m, int fd, void *buf, size_t n, Desc *d, uint32_t seq, uint32_t *edges) {
    if (unlikely(!desc_ref(m, d, seq))) return -EBADF;
    *edges = load_acq(&d->edges[DIR_READ]); /* before the call: step 1 of netpoll.c */
    long r = sys_here(SYS_recvfrom, fd, buf, n, MSG_DONTWAIT);
    desc_unref(m, d);
    return r;
}

INLINE long socket_read(int fd, void *buf, size_t n, attempt_fn *attempt) {
    Desc *d = desc_at(fd);
    if (unlikely(d == NULL || load_rlx(&d->mode[DIR_READ]) != MODE_SOCKET ||
                 !load_rlx(&d->registered) || load_rlx(&d->hung) || odd(n) || in_forked_child()))
        return read_slowly(fd, buf, n, attempt, NO_LIFE);
    M *m = enter();
    uint32_t seq = desc_seq(d), edges;
    int found = is_goroutine(m) ? READ_AGAIN : READ_SLOWLY;
    bool drained = desc_drained(d, &edges), waited = false;
    long r = -EAGAIN;
    while (likely(found == READ_AGAIN)) {
        if (!drained) r = socket_ask(m, fd, buf, n, d, seq, &edges);
        if (r != -EAGAIN && likely(r != -EINTR)) break;
        if (r == -EAGAIN) found = wait_to_read(&m, fd, d, seq, edges, waited);
        expect_next(m);
        drained = false;
        waited = true;
    }
    if (unlikely(found != READ_AGAIN || r == -ENOTSOCK)) {
        leave(m);
        return found == READ_CLOSED ? -EBADF : read_slowly(fd, buf, n, attempt, seq);
    }
    if (r >= 0) tsan_acquire(&io_order);
    if (r > 0 && (size_t)r < n) desc_note_drained(d, edges);
    desc_pass_on(m, d, DIR_READ);
    leave(m);
    return r;
}

EXPORT ssize_t gort_read(int fd, void *buf, size_t n) { return socket_read(fd, buf, n, try_read); }

EXPORT ssize_t gort_recv(int fd, void *buf, size_t n, int flags) {
    if (unlikely(flags != 0)) return gort_recv_until(fd, buf, n, flags, GORT_FOREVER);
    return socket_read(fd, buf, n, try_recv);
}

/* ---- a write --------------------------------------------------------------------------------- */

/* The attempt. -EAGAIN: the general way, with *life. */
INLINE long socket_write(int fd, const void *buf, size_t n, uint64_t *life) {
    Desc *d = desc_at(fd);
    *life = NO_LIFE;
    if (unlikely(d == NULL || load_rlx(&d->mode[DIR_WRITE]) != MODE_SOCKET || odd(n) ||
                 in_forked_child()))
        return -EAGAIN;
    M *m = enter();
    uint32_t seq = desc_seq(d);
    long r = -EBADF;
    tsan_release(&io_order);
    if (likely(desc_ref(m, d, seq))) {
        r = sys_here(SYS_sendto, fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        desc_unref(m, d);
        if (unlikely(r == -EINTR || r == -ENOTSOCK)) r = -EAGAIN;
        *life = seq;
        if (likely(r != -EAGAIN)) desc_pass_on(m, d, DIR_WRITE);
    }
    leave(m);
    return r;
}

EXPORT ssize_t gort_write(int fd, const void *buf, size_t n) {
    uint64_t life;
    long r = socket_write(fd, buf, n, &life);
    return likely(r != -EAGAIN) ? r : write_slowly(fd, buf, n, try_write, life);
}

EXPORT ssize_t gort_send(int fd, const void *buf, size_t n, int flags) {
    uint64_t life;
    if (unlikely((flags & ~MSG_NOSIGNAL) != 0))
        return gort_send_until(fd, buf, n, flags, GORT_FOREVER);
    long r = socket_write(fd, buf, n, &life);
    return likely(r != -EAGAIN) ? r : write_slowly(fd, buf, n, try_send, life);
}

/* What the first attempt has left. */
static NOINLINE ssize_t write_rest(int fd, const char *buf, size_t n, size_t done, uint64_t life) {
    Call c = {.attempt = try_write,
              .fd = fd,
              .dir = DIR_WRITE,
              .buf = (void *)(buf + done),
              .n = n - done,
              .begun = life != NO_LIFE,
              .seq = (uint32_t)life};
    ssize_t r = move_all(&c, GORT_FOREVER);
    return r < 0 ? r : (ssize_t)n;
}

EXPORT ssize_t gort_write_full(int fd, const void *buf, size_t n) {
    uint64_t life;
    long r = socket_write(fd, buf, n, &life);
    if (likely(r > 0 && (size_t)r == n) || (r < 0 && r != -EAGAIN)) return r;
    return write_rest(fd, buf, n, r < 0 ? 0 : (size_t)r, life);
}
