/*
 * gort_close: wakes whoever waits, and gives the number back to the kernel at a moment when no
 * call of ours can mistake its next owner for it.
 *
 *   1. lock; the sequence goes on, DESC_CLOSING is set; all waiters are claimed with -EBADF; unlock.
 *      From here on calls give -EBADF.
 *   2. wait until no call is inside the kernel any more. These are non-blocking calls in a section,
 *      so it is short; the last one out readies us (call_unref).
 *   3. lock; the sequence goes on once more, DESC_CLOSING is cleared, and still in the lock
 *      close(2); unlock. Then ready the waiters.
 *
 * Two closes of one descriptor: the sequence is read first of all. The loser finds DESC_CLOSING, or
 * another sequence. DESC_CLOSING is cleared before the kernel can give the number away, so the
 * next owner never meets it, however long this thread is held up after close(2); and it reads the
 * sequence after the last change.
 *
 * close(2) in a lock must be short. For sockets and pipes it is. A file that flushes, a terminal
 * that drains, a socket with SO_LINGER can take seconds: those are duplicated first, so that
 * giving up the number is short, and the duplicate is closed outside, announced as a system call.
 *
 * The order in 3 also serves the poller: whoever is linked after it belongs to the next owner.
 */
#include "io.h"
#include "uring.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool lingers(int fd) {
    struct linger l = {0};
    socklen_t len = sizeof l;
    return sys6(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &l, &len, 0) != 0 || (l.l_onoff && l.l_linger > 0);
}

/* True: close(2) is short. */
static bool closes_fast(Desc *d, int fd) {
    uint8_t r = load_rlx(&d->mode[DIR_READ]), w = load_rlx(&d->mode[DIR_WRITE]);
    if (r == MODE_SOCKET || w == MODE_SOCKET) return !lingers(fd);
    return r == MODE_NOWAIT || w == MODE_NOWAIT;
}

/* Step 1. 0, or -EBADF: somebody else is closing it, or has. */
static int retire(Desc *d, uint32_t seq, GList *woken) {
    int r = -EBADF;
    lock(&d->lock, RANK_POLL);
    if (desc_seq(d) == seq && !(load_rlx(&d->state) & DESC_CLOSING)) {
        add_seq(&d->state, DESC_SEQ + DESC_CLOSING);
        desc_wake_all(d, -EBADF, woken);
        r = 0;
    }
    unlock(&d->lock);
    return r;
}

/* Step 2. A pinned goroutine must not park. */
static M *wait_for_calls(M *m, Desc *d) {
    while (load_seq(&d->state) & DESC_REFS) {
        if (m->pins) {
            os_yield();
            continue;
        }
        lock(&d->lock, RANK_POLL);
        if (load_seq(&d->state) & DESC_REFS) {
            d->closer = self(m);
            m = park(m, &d->lock, WAIT_IO);
        } else {
            unlock(&d->lock);
        }
    }
    return m;
}

/* TSan watches descriptors as if they were memory, and learns from libc's close that a number is free: by
 * a bare system call its next owner would be a race with the last one. */
static int close_number(int fd) {
    if (!tsan_on()) return (int)sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    int *err = __errno_location(), before = *err, r = close(fd) < 0 ? -*err : 0;
    *err = before;
    return r;
}

/* Step 3. *spare: a duplicate to be closed outside; -1: none. */
static int give_back(Desc *d, int fd, int *spare, GList *woken) {
    if (load_seq(&uring_standing)) uring_submit(woken); /* before the number is anybody else's: uring.c */
    *spare = closes_fast(d, fd) ? -1 : (int)sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
    lock(&d->lock, RANK_POLL);
    if (d->registered) kpoll_del(fd);
    d->registered = false;
    store_rlx(&d->hung, 0);
    store_rlx(&d->tcp, 0);
    store_rlx(&d->drained_at, 0);
    store_rlx(&d->mode[DIR_READ], MODE_UNKNOWN);
    store_rlx(&d->mode[DIR_WRITE], MODE_UNKNOWN);
    add_seq(&d->state, DESC_SEQ - DESC_CLOSING);
    int r = close_number(fd);
    unlock(&d->lock);
    return r == -EINTR ? 0 : r;
}

/* Outside of any section. */
static int close_slowly(int fd) {
    gort_enter_syscall();
    int r = (int)sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    gort_exit_syscall();
    return r == -EINTR ? 0 : r;
}

EXPORT int gort_close(int fd) {
    GList woken = {0};
    int spare;
    if (in_forked_child()) return -ENOTCONN;
    Desc *d = desc_of(fd);
    if (d == NULL) return -EBADF;
    uint32_t seq = desc_seq(d); /* first of all */
    tsan_release(&io_order);
    M *m = enter();
    int r = retire(d, seq, &woken);
    if (r == 0) {
        m = wait_for_calls(m, d);
        r = give_back(d, fd, &spare, &woken);
        wake_list(m, &woken);
    } else {
        spare = -1;
    }
    leave(m);
    if (spare >= 0) {
        int late = close_slowly(spare);
        if (r == 0) r = late;
    }
    return r;
}
