/*
 * gort_close: wakes all waiters, and gives the number back to the kernel at a moment when no call
 * can take its next owner for the last.
 *
 *   1. lock; add to the sequence, set DESC_CLOSING, claim all waiters with -EBADF; unlock. From
 *      here on calls give -EBADF.
 *   2. wait until no call is inside the kernel. It is short: those calls do not block and are in a
 *      section. The last one out readies the closer (call_unref).
 *   3. lock; add to the sequence, DESC_CLOSING becomes DESC_GIVING; close(2); clear DESC_GIVING;
 *      unlock. Then ready the waiters.
 *
 * Two closes of one descriptor: each reads the sequence first, and the loser finds DESC_CLOSING or
 * another sequence. DESC_CLOSING is cleared before the kernel can give the number away, so the next
 * owner never meets it and reads the sequence after its last change; and a waiter that the poller
 * finds linked after 3 is the next owner's. A call that begins during 3 has the next owner's
 * sequence, but may find the last file: it sees DESC_GIVING and waits for the lock (desc_ref_late).
 * The hook's calls look at the number's note only: desc_note_end, close(2), desc_note_over.
 *
 * close(2) in a lock must be short. For sockets and pipes it is. A file that flushes, a terminal
 * that drains, a socket with SO_LINGER may take seconds: the closer duplicates it, closes the
 * number in the lock, and closes the duplicate outside, announced as a system call.
 *
 * Calls that sleep in the kernel, on a disk or a terminal, are not waited for. They are counted
 * apart (call_doze). While there are any, step 3 keeps the number: the kernel looks a number up
 * when a call begins, and a call that has handed off its P but is not in the kernel yet would find
 * the next owner's file. So dup3(2) closes the file and leaves a placeholder, an O_PATH descriptor,
 * on which every such call gives EBADF. DESC_CLOSING stays, and the last call to wake frees the
 * number (desc_let_go). Where no number is free for a placeholder, close waits for those calls.
 *
 * Two more ends, for libgort-hook.so, have no placeholder and wait for calls that sleep, too.
 * desc_replace() has dup3(2) in step 3. desc_shut() is all but close(2), which fclose(3) makes; a
 * call that begins before libc's close(2) races with it.
 */
#include "io/close.h"
#include "io/fdcall.h"
#include "sync/sema.h"
#include "os/linux/uring.h"

#include <fcntl.h>

static bool lingers(int fd) {
    struct linger l = {0};
    socklen_t len = sizeof l;
    return sys6(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &l, &len, 0) != 0 ||
           (l.l_onoff && l.l_linger > 0);
}

/* True: close(2) is short. */
static bool closes_fast(Desc *d, int fd) {
    uint8_t r = load_rlx(&d->mode[DIR_READ]), w = load_rlx(&d->mode[DIR_WRITE]);
    if (r == MODE_SOCKET || w == MODE_SOCKET) return !lingers(fd);
    return r == MODE_NOWAIT || w == MODE_NOWAIT;
}

/* Step 1. 0, or -EBADF: another call closes or has closed the descriptor. */
static int desc_retire(Desc *d, uint32_t seq, GList *woken) {
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

static bool calls_inside(Desc *d) { return (load_acq(&d->state) & DESC_REFS) != 0; }
static bool calls_asleep(Desc *d) { return load_rlx(&d->asleep[0]) + load_rlx(&d->asleep[1]) != 0; }

/* Step 3, in the lock: around close(2) or dup3(2). */
static uint32_t giving_begins(Desc *d, int fd) {
    add_seq(&d->state, DESC_SEQ - DESC_CLOSING + DESC_GIVING);
    return desc_note_end(fd);
}
static void giving_ends(Desc *d, int fd, uint32_t life) {
    desc_note_over(fd, life);
    sub_seq(&d->state, DESC_GIVING);
}
static int number_give_away(Desc *d, int fd) {
    uint32_t life = giving_begins(d, fd);
    int r = close_number(fd);
    giving_ends(d, fd, life);
    return r;
}

/* The runtime ends, and the closer will not run again: frees the number, unless a plain thread
 * sleeps in the kernel with it. Calls inside are plain threads', and short. */
static void close_abandon(Sleeper *s) {
    Desc *d = s->object;
    while (calls_inside(d)) os_yield();
    lock(&d->lock, RANK_POLL);
    d->closer = NULL;
    if (!calls_asleep(d)) {
        if (s->amount >= 0) number_give_away(d, (int)s->amount);
        else add_seq(&d->state, DESC_SEQ - DESC_CLOSING);
    }
    unlock(&d->lock);
}

/* Neither a pinned goroutine nor one inside a blocking call may park. */
static bool cannot_park(M *m) { return m->pins || (!m->plain && in_blocking_call(m)); }

/* Until some(d) is false. fd: what close_abandon closes; -1: nothing. */
static M *wait_until_none(M *m, Desc *d, int fd, bool (*some)(Desc *d)) {
    Sleeper s;
    while (some(d)) {
        if (cannot_park(m)) {
            os_yield();
            continue;
        }
        lock(&d->lock, RANK_POLL);
        if (some(d)) {
            d->closer = self(m);
            sleeper_init(&s, m, GORT_FOREVER, d, close_abandon);
            s.amount = fd;
            m = park(m, &d->lock, WAIT_IO);
            sleeper_over(&s);
        } else {
            unlock(&d->lock);
        }
    }
    return m;
}

/* Step 2. *place: the placeholder; -1: no call sleeps. From here on none falls asleep. */
static M *wait_for_calls(M *m, Desc *d, int fd, int *place) {
    m = wait_until_none(m, d, fd, calls_inside);
    *place = -1;
    if (likely(!calls_asleep(d))) return m;
    *place = (int)sys6(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0, 0, 0);
    if (*place != fd) return *place >= 0 ? m : wait_until_none(m, d, fd, calls_asleep);
    /* the program had closed the number, and it stays closed */
    sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    *place = -1;
    return m;
}

/* In the lock. Closes the file, and frees the number unless a call sleeps. */
static int close_or_hold(Desc *d, int fd, int place) {
    bool hold = place >= 0 && calls_asleep(d) &&
                /* else dup3 would open a closed number */
                sys6(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0 &&
                sys6(SYS_dup3, place, fd, O_CLOEXEC, 0, 0, 0) >= 0;
    store_rlx(&d->held, hold);
    if (likely(!hold)) return number_give_away(d, fd);
    desc_note_over(fd, desc_note_end(fd)); /* on the placeholder every call fails */
    return 0;
}

/* In the lock: forgets what is known of the file. */
static void forget_locked(Desc *d, int fd) {
    if (d->registered) kpoll_del(fd);
    desc_reset(d);
}

/* Before step 3: no entry of the ring names the number any more (uring.c). */
static void clear_ring(M *m, GList *woken) {
    if (likely(load_rlx(&uring_standing) == 0)) return;
    if (shares_numbers(m)) uring_submit(woken);
    else uring_withdraw(woken);
}

/* Before step 3. The duplicate to close outside of the lock; -1: none. */
static int spare_of(M *m, Desc *d, int fd, GList *woken) {
    clear_ring(m, woken);
    return closes_fast(d, fd) ? -1 : (int)sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
}

/* Step 3. */
static int number_give_back(Desc *d, int fd, int place) {
    lock(&d->lock, RANK_POLL);
    forget_locked(d, fd);
    int r = close_or_hold(d, fd, place);
    unlock(&d->lock);
    if (place >= 0) sys6(SYS_close, place, 0, 0, 0, 0, 0);
    return r == -EINTR ? 0 : r;
}

/* Step 3 with dup3(2). */
static int number_give_to(Desc *d, int fd, int from, int flags) {
    lock(&d->lock, RANK_POLL);
    forget_locked(d, fd);
    uint32_t life = giving_begins(d, fd);
    int r = (int)sys6(SYS_dup3, from, fd, flags, 0, 0, 0);
    giving_ends(d, fd, life);
    unlock(&d->lock);
    return r;
}

/* ---- calls that sleep ------------------------------------------------------------------------ */

void call_doze(Call *c) {
    lock(&c->d->lock, RANK_POLL);
    c->d->asleep[c->m->plain]++;
    unlock(&c->d->lock);
    call_unref(c);
}

void call_rouse(Call *c) {
    Desc *d = c->d;
    G *closer = NULL;
    lock(&d->lock, RANK_POLL);
    d->asleep[c->m->plain]--;
    desc_let_go(d, c->fd);
    if (!calls_asleep(d)) {
        closer = d->closer;
        d->closer = NULL;
    }
    unlock(&d->lock);
    if (closer) ready(c->m, closer);
    call_reref(c);
}

/* ---- gort_close ------------------------------------------------------------------------------ */

/* Ends the section; closes fd, if it is one. */
static int close_slowly(M *m, int fd) {
    bool here = cannot_park(m);
    leave(m);
    if (fd < 0) return 0;
    if (!here) gort_enter_syscall();
    int r = (int)sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    if (!here) gort_exit_syscall();
    return r == -EINTR ? 0 : r;
}

/* Without memory for an entry: there are no waiters, and nothing to forget. */
static NOINLINE int close_apart(int fd) {
    if (desc_refusal(fd) == -EBADF) return -EBADF;
    uint32_t life = desc_note_end(fd);
    tsan_release(&io_order);
    int r = close_slowly(enter(), fd);
    desc_note_over(fd, life);
    return r;
}

static int close_since(Desc *d, int fd, uint32_t seq) {
    GList woken = {0};
    int spare = -1, place;
    tsan_release(&io_order);
    M *m = enter();
    int r = desc_retire(d, seq, &woken);
    if (r == 0) {
        m = wait_for_calls(m, d, fd, &place);
        spare = spare_of(m, d, fd, &woken);
        r = number_give_back(d, fd, place);
        wake_list(m, &woken);
    }
    int late = close_slowly(m, spare);
    return r == 0 ? late : r;
}

EXPORT int gort_close(int fd) {
    if (in_forked_child()) return -ENOTCONN;
    Desc *d = desc_of(fd);
    if (unlikely(d == NULL)) return close_apart(fd);
    return close_since(d, fd, desc_seq(d)); /* the sequence first of all */
}

int desc_close(int fd, uint32_t seq) {
    Desc *d = desc_at(fd);
    return d ? close_since(d, fd, seq) : -EBADF;
}

/* ---- the hook's ------------------------------------------------------------------------------ */

/* Steps 1 and 2, waiting for calls that sleep as well. */
static int desc_retire_all(M **m, Desc *d, GList *woken) {
    int r = desc_retire(d, desc_seq(d), woken);
    if (r < 0) return r;
    *m = wait_until_none(*m, d, -1, calls_inside);
    *m = wait_until_none(*m, d, -1, calls_asleep);
    return 0;
}

int desc_replace(int from, int fd, int flags) {
    GList woken = {0};
    Desc *d = desc_of(fd);
    int r = (int)sys6(SYS_fcntl, from, F_GETFD, 0, 0, 0, 0), spare = -1;
    if (r < 0) return -EBADF; /* and fd is left alone */
    if (d == NULL) {
        /* as close_apart */
        if (desc_refusal(fd) == -EBADF) return -EBADF;
        uint32_t life = desc_note_end(fd);
        r = (int)sys6(SYS_dup3, from, fd, flags, 0, 0, 0);
        desc_note_over(fd, life);
        return r;
    }
    tsan_release(&io_order);
    M *m = enter();
    r = desc_retire_all(&m, d, &woken);
    if (r == 0) {
        spare = spare_of(m, d, fd, &woken);
        r = number_give_to(d, fd, from, flags);
        wake_list(m, &woken);
    }
    close_slowly(m, spare);
    return r;
}

int desc_shut(int fd) {
    GList woken = {0};
    Desc *d = desc_of(fd);
    if (d == NULL) return desc_refusal(fd) == -EBADF ? -EBADF : 0; /* no waiters */
    M *m = enter();
    int r = desc_retire_all(&m, d, &woken);
    if (r == 0) {
        clear_ring(m, &woken);
        lock(&d->lock, RANK_POLL);
        forget_locked(d, fd);
        desc_note_unused(fd); /* the hook ends its life, around libc's close */
        add_seq(&d->state, DESC_SEQ - DESC_CLOSING);
        unlock(&d->lock);
    }
    wake_list(m, &woken);
    leave(m);
    return r;
}
