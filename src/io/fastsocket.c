/*
 * The short way of a read and a write: on a socket, by a goroutine, without a deadline.
 *
 * After the kernel's work nothing of the library is in the first-level caches, and every `ret`
 * behind the system call is mispredicted. So this room repeats the loop of wait.c's call_run() in
 * one function with one frame and one `ret` into the program: a write and a read that do not wait
 * take 243 instructions instead of 577, an echo whose reads wait 1910 instead of 2750. And a parked
 * stack has nine cache lines less to fetch again. The decision in the lock is shared:
 * desc_look_locked().
 *
 * The entry's hints choose the short way:
 *
 *   a read     the descriptor is a socket (mode), the kernel reports it (registered), and it has
 *              reported nothing but data so far (hung)
 *   a write    it is a socket; only the attempt is made here
 *
 * Whatever else turns up goes the general way from the start, as the same call: it keeps the
 * sequence, so it finds a close since then. (A reader that was woken in vain just before loses its
 * place at the front of the queue.) An old hint does no harm where the number has another owner: on
 * a socket, the sequence is that owner's or the call ends with EBADF; of anything else the kernel
 * says ENOTSOCK; `registered` is read again in the entry's lock.
 *
 * A reader of a drained socket (attempt.c) parks without being counted in the entry: it makes no
 * call, and asks in the lock, where gort_close retires the descriptor, whether it was closed.
 */
#include "io/fdcall.h"
#include "base/sysfault.h"

#define NOT_BEGUN (~(uint64_t)0) /* in place of the sequence */

/* As sys6, but inline: one `ret` only follows the system call. */
INLINE long sys_here(long nr, int fd, const void *buf, size_t n, int flags) {
    if (unlikely(sysfault_on)) return os_sys(nr, fd, (long)buf, (long)n, flags, 0, 0);
    return arch_sys6(nr, fd, (long)buf, (long)n, flags, 0, 0);
}

/* The call began with this sequence, or NOT_BEGUN. */
INLINE void call_begun(Call *c, uint64_t begun) {
    c->begun = begun != NOT_BEGUN;
    c->seq = (uint32_t)begun;
}

static NOINLINE long run_general(int fd, const void *buf, size_t n, attempt_fn *attempt, int dir,
                                 uint64_t begun) {
    Call c = call_of(attempt, fd, dir, buf, n);
    c.plain = dir == DIR_READ && (ssize_t)n > 0;
    call_begun(&c, begun);
    return call_run(&c, GORT_FOREVER);
}

/* Between two attempts. `edges` was sampled before the last; `front`: of the queue. LOOK_RETRY also
 * after a wait: the next attempt finds a close by the sequence. */
INLINE int socket_wait(M **m, int fd, Desc *d, uint32_t seq, uint32_t edges, bool front) {
    Waiter w;
    if (unlikely(self(*m)->odd & ODD_USES)) return LOOK_UNREPORTED;
    lock(&d->lock, RANK_POLL);
    int look = desc_look_locked(d, DIR_READ, seq, edges);
    if (unlikely(look != LOOK_PARK)) {
        unlock(&d->lock);
        return look;
    }
    desc_trust(d, fd);
    desc_wait(*m, d, DIR_READ, &w, front);
    *m = park(*m, &d->lock, WAIT_IO);
    return LOOK_RETRY;
}

/* One attempt; -EBADF: the descriptor was closed since the call began. */
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
                 !load_rlx(&d->registered) || load_rlx(&d->hung) || odd_length(n) ||
                 in_forked_child()))
        return run_general(fd, buf, n, attempt, DIR_READ, NOT_BEGUN);
    M *m = enter();
    uint32_t seq = desc_seq(d), edges;
    int look = is_goroutine(m) ? LOOK_RETRY : LOOK_UNREPORTED;
    bool drained = desc_drained(d, &edges), waited = false;
    long r = -EAGAIN;
    while (likely(look == LOOK_RETRY)) {
        if (!drained) r = socket_ask(m, fd, buf, n, d, seq, &edges);
        if (r != -EAGAIN && likely(r != -EINTR)) break;
        if (r == -EAGAIN) look = socket_wait(&m, fd, d, seq, edges, waited);
        expect_next(m);
        drained = false;
        waited = true;
    }
    if (unlikely(look != LOOK_RETRY || r == -ENOTSOCK)) {
        leave(m);
        return look == LOOK_CLOSED ? -EBADF : run_general(fd, buf, n, attempt, DIR_READ, seq);
    }
    if (r >= 0) tsan_acquire(&io_order);
    desc_note_drained(d, edges, r, n);
    desc_pass_on(m, d, DIR_READ);
    leave(m);
    return r;
}

EXPORT ssize_t gort_read(int fd, void *buf, size_t n) { return socket_read(fd, buf, n, try_rw); }

EXPORT ssize_t gort_recv(int fd, void *buf, size_t n, int flags) {
    if (unlikely(flags != 0)) return gort_recv_until(fd, buf, n, flags, GORT_FOREVER);
    return socket_read(fd, buf, n, try_recv);
}

/* One attempt. -EAGAIN: go the general way, with *begun. */
INLINE long socket_write(int fd, const void *buf, size_t n, uint64_t *begun) {
    Desc *d = desc_at(fd);
    *begun = NOT_BEGUN;
    if (unlikely(d == NULL || load_rlx(&d->mode[DIR_WRITE]) != MODE_SOCKET || odd_length(n) ||
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
        *begun = seq;
        if (likely(r != -EAGAIN)) desc_pass_on(m, d, DIR_WRITE);
    }
    leave(m);
    return r;
}

EXPORT ssize_t gort_write(int fd, const void *buf, size_t n) {
    uint64_t begun;
    long r = socket_write(fd, buf, n, &begun);
    return likely(r != -EAGAIN) ? r : run_general(fd, buf, n, try_rw, DIR_WRITE, begun);
}

EXPORT ssize_t gort_send(int fd, const void *buf, size_t n, int flags) {
    uint64_t begun;
    if (unlikely((flags & ~MSG_NOSIGNAL) != 0))
        return gort_send_until(fd, buf, n, flags, GORT_FOREVER);
    long r = socket_write(fd, buf, n, &begun);
    return likely(r != -EAGAIN) ? r : run_general(fd, buf, n, try_send, DIR_WRITE, begun);
}

/* Writes what the first attempt has left. */
static NOINLINE ssize_t write_rest(int fd, const char *buf, size_t n, size_t done, uint64_t begun) {
    Call c = call_of(try_rw, fd, DIR_WRITE, buf + done, n - done);
    call_begun(&c, begun);
    ssize_t r = move_all(&c, GORT_FOREVER);
    return r < 0 ? r : (ssize_t)n;
}

EXPORT ssize_t gort_write_full(int fd, const void *buf, size_t n) {
    uint64_t begun;
    long r = socket_write(fd, buf, n, &begun);
    if (likely(r > 0 && (size_t)r == n) || (r < 0 && r != -EAGAIN)) return r;
    return write_rest(fd, buf, n, r < 0 ? 0 : (size_t)r, begun);
}
