/*
 * A call on a descriptor: try, wait, try again. This is the waiter's side of netpoll.c's protocol.
 *
 * While a call is inside the kernel, in a section, the entry counts it (desc_ref), and gort_close
 * waits for it; the call gives the count back before it waits. A goroutine parks in the entry's
 * queue. A plain thread, with or without a runtime, sleeps in ppoll(2) on the descriptor and on an
 * eventfd of its own, which gort_close writes to.
 *
 * Paced calls. Some waits end without an edge: a unix connect to a full backlog, a datagram to an
 * unconnected peer whose queue is full, a device that epoll refuses. And some descriptors say that
 * they are ready and are not: a socket is "in error" until the program fetches its error queue,
 * though a read of it has to wait; a call believes that CREDIT times. Such calls wait in the queue,
 * where gort_close finds them, with a short deadline that doubles up to PACE. A send may end with
 * or without an edge, by a shutdown: it waits for both (looks). (A goroutine meets the second kind
 * where the descriptor is hung, since it is registered anew for each wait then. A thread asks
 * poll(2) whether the descriptor lies or another reader was faster.)
 *
 * After its deadline a call makes one more attempt: it returns what has arrived by then, even where
 * no thread had the time to poll. Where the table of entries cannot grow, a call that need not wait
 * is made all the same (call_apart); a call that must wait gives -ENOMEM.
 */
#include "io/fdcall.h"
#include "sched/outside.h"
#include "sync/sema.h"

#define PACE_FIRST (50 * GORT_US)

char io_order;

void wake_list(M *m, GList *list) {
    uint32_t n = list->count;
    if (n == 0) return;
    ready_list(m, list);
    sub_seq(&sched.poll_waiters, n); /* after: see netpoll.c */
}

NOINLINE void desc_wake_closer(M *m, Desc *d) {
    lock(&d->lock, RANK_POLL);
    G *gp = d->closer;
    d->closer = NULL;
    unlock(&d->lock);
    if (gp) ready(m, gp);
}

/* While close(2) is under way no call begins: the number may still be the last owner's file. */
NOINLINE bool desc_ref_late(M *m, Desc *d, uint32_t seq) {
    desc_unref(m, d);
    if (!(load_acq(&d->state) & DESC_GIVING) && !desc_lives(d, seq)) return false;
    lock(&d->lock, RANK_POLL);
    unlock(&d->lock);
    return desc_ref(m, d, seq);
}

void call_unref(Call *c) { desc_unref(c->m, c->d); }
void call_reref(Call *c) { __atomic_fetch_add(&c->d->state, 1, __ATOMIC_SEQ_CST); }
bool call_closed(Call *c) { return !desc_lives(c->d, c->seq); }

/* 0, or -EBADF; any other failure to register (not pollable, no memory) paces the call. */
static int report_locked(Call *c) {
    bool doubted = c->d->registered && c->vain > CREDIT;
    int r = doubted ? 0 : desc_register(c->d, c->fd);
    if (r == -EBADF) return r;
    c->pace = doubted || r < 0;
    return 0;
}

/* True: the wait is over before it began, with *result. */
static bool settled_locked(Call *c, int *result) {
    int look = desc_look_locked(c->d, c->dir, c->seq, c->edges);
    *result = 0;
    if (look == LOOK_CLOSED) *result = -EBADF;
    else if (c->pace) return false;
    else if (look == LOOK_RETRY) return true;
    else if (look == LOOK_PARK) desc_trust(c->d, c->fd);
    else *result = report_locked(c);
    return *result < 0;
}

static int64_t sooner(Call *c, int64_t deadline) {
    if (!c->pace && !c->looks) return deadline;
    int64_t next = c->pause == 0 ? PACE_FIRST : c->pause * 2;
    c->pause = c->pace && next < PACE ? next : PACE;
    int64_t then = time_after(os_now(), c->pause);
    return then < deadline ? then : deadline;
}

static int call_withdraw(Call *c, Waiter *w) {
    lock(&c->d->lock, RANK_POLL);
    if (w->linked) waiter_unlink(&c->d->q[c->dir], w);
    unlock(&c->d->lock);
    sub_seq(&sched.poll_waiters, 1);
    return c->pace || c->looks ? 0 : -ETIMEDOUT;
}

/* 0: try again; -EBADF, -ETIMEDOUT. */
static int call_wait_parked(Call *c, int64_t deadline) {
    Desc *d = c->d;
    Waiter w;
    int settled, ended = 0;
    lock(&d->lock, RANK_POLL);
    if (settled_locked(c, &settled)) {
        unlock(&d->lock);
        return settled;
    }
    deadline = sooner(c, deadline);
    desc_wait(c->m, d, c->dir, &w, c->retried);
    c->retried = true;
    /* park has a smaller frame */
    if (likely(deadline == GORT_FOREVER)) c->m = park(c->m, &d->lock, WAIT_IO);
    else c->m = park_until(c->m, &d->lock, WAIT_IO, deadline, w.ticket, &ended);
    expect_next(c->m);
    return ended ? call_withdraw(c, &w) : w.result;
}

static NOINLINE int call_wait_thread(Call *c, int64_t deadline) {
    Desc *d = c->d;
    Waiter w = {.wake_fd = wake_fd_new()};
    uint32_t life = kept_life(w.wake_fd);
    lock(&d->lock, RANK_POLL);
    bool closed = call_closed(c);
    if (!closed) waiter_link(&d->threads, &w, false);
    desc_note(c->fd);
    unlock(&d->lock);
    if (!closed) {
        /* ready, it says, though the last attempts had to wait */
        if (c->vain > CREDIT && fd_poll_now(c->fd, poll_events(c->dir)) > 0) c->pace = true;
        struct pollfd p[] = {{.fd = c->pace ? -1 : c->fd, .events = poll_events(c->dir)},
                             {.fd = w.wake_fd, .events = POLLIN}};
        /* without an eventfd (no number is free), or with a context, it looks every PACE */
        bool looks = w.wake_fd < 0 || ender_of(self(c->m)) != NULL;
        thread_ppoll(c->m, p, 2, sooner(c, deadline), looks);
        lock(&d->lock, RANK_POLL);
        if (w.linked) waiter_unlink(&d->threads, &w);
        unlock(&d->lock);
    }
    if (w.wake_fd >= 0) kept_close(w.wake_fd, life);
    return closed ? -EBADF : w.result;
}

NOINLINE void desc_pass_on_slow(M *m, Desc *d, int dir) {
    GList list = {0};
    lock(&d->lock, RANK_POLL);
    desc_wake_next(d, dir, &list);
    unlock(&d->lock);
    wake_list(m, &list);
}

/* A goroutine that may park does so; else (pinned, in a handler) the thread sleeps. */
static void life_pause(int64_t ns) {
    M *m = getm();
    struct timespec ts = {ns / GORT_SEC, ns % GORT_SEC};
    if (m != NULL && !m->plain && may_park(m, (uintptr_t)__builtin_frame_address(0)))
        gort_sleep(ns);
    else sys6(SYS_ppoll, NULL, 0, &ts, NULL, 0, 0);
}

NOINLINE uint32_t life_awaited(int fd) {
    DescNote *note = desc_note_of(fd);
    uint32_t none = 0;
    /* no close and no call has used the number yet; a close that comes in between takes 2 */
    if (load_rlx(&note->life) == 0) cas_seq(&note->life, &none, 1);
    uint32_t life = note_life(note);
    for (int64_t pause = PACE_FIRST; life == 0 && pause <= PACE; pause *= 2) {
        life_pause(pause);
        life = note_life(note);
    }
    return life;
}

/* Under the hook: notes the number's life. A number that is being closed has none; if that lasts
 * for 13 ms (life_awaited) the call is adrift: each attempt takes the number as it is then. After
 * one that moved something, false: there is no next run. */
static NOINLINE bool call_note(Call *c, DescNote *note) {
    if (c->adrift) return false;
    c->life = note_life(note);
    if (unlikely(c->life == 0)) c->life = life_awaited(c->fd);
    c->adrift = c->life == 0;
    return true;
}

/* The hook's table also knows of a close that could not take the runtime's locks, and of one that
 * came before the call read the entry's sequence. */
static bool same_life(Call *c) {
    DescNote *note = desc_note_of(c->fd);
    if (likely(note == NULL)) return true;
    return c->adrift || note_known(note, c->life);
}

/* In a section. 0: the call is counted; -EBADF: the section has ended. */
static int call_enters(Call *c) {
    if (likely(desc_ref(c->m, c->d, c->seq))) {
        if (likely(same_life(c))) return 0;
        call_unref(c);
    }
    leave(c->m);
    return -EBADF;
}

/* c->d is set. 0: the section has begun and the call is counted; -EBADF. */
static int call_begin_at(Call *c) {
    DescNote *note = desc_note_of(c->fd);
    if (unlikely(note != NULL) && c->life == 0 && !call_note(c, note)) return -EBADF;
    c->m = enter();
    if (!c->begun) c->seq = desc_seq(c->d);
    c->begun = true;
    c->retried = false;
    c->pace = c->adrift;
    c->vain = 0;
    return call_enters(c);
}

/* 0; -ENOMEM: no memory for the entry; -ENOTCONN, -EBADF. */
static int call_begin(Call *c) {
    if (unlikely(in_forked_child())) return -ENOTCONN;
    c->d = desc_of(c->fd);
    if (unlikely(c->d == NULL)) return desc_refusal(c->fd);
    return call_begin_at(c);
}

static long call_end(Call *c, long r) {
    call_unref(c);
    desc_pass_on(c->m, c->d, c->dir);
    leave(c->m);
    return r;
}

/* The wait between two attempts, without the count. 0: try again; -EBADF: the section has ended. */
static int call_wait(Call *c, int64_t deadline) {
    call_unref(c);
    int r = is_goroutine(c->m) ? call_wait_parked(c, deadline) : call_wait_thread(c, deadline);
    if (r != -EBADF) return call_enters(c);
    leave(c->m);
    return r;
}

/* A connection that is gone, with the error that says so, which an attempt would use up. */
static bool is_reset(int fd) { return (~fd_poll_now(fd, POLLIN) & (POLLERR | POLLHUP)) == 0; }

static long call_attempt(Call *c) {
    long r;
    if (unlikely(c->goes_on) && is_reset(c->fd)) return -ECONNRESET; /* the caller drops it */
    c->edges = load_acq(&c->d->edges[c->dir]); /* before the call: step 1 of netpoll.c */
    if (c->dir == DIR_WRITE) tsan_release(&io_order);
    do r = c->attempt(c);
    while (r == -EINTR && !call_closed(c)); /* an attempt that slept was not counted */
    if (unlikely(r == -EINTR)) r = -EBADF;
    if (c->dir == DIR_READ && r >= 0) tsan_acquire(&io_order);
    return r;
}

/* The end of what can be received: nothing, from nobody. */
static long receive_none(Call *c) {
    struct msghdr *msg = c->attempt == try_recvmsg ? c->buf : NULL;
    if (c->salen) *c->salen = 0;
    if (msg) msg->msg_namelen = 0, msg->msg_controllen = 0, msg->msg_flags = 0;
    return 0;
}

/* After a wake-up in vain. A call that does not block gets EAGAIN from the kernel even where the
 * reading side is shut, if it wants a datagram or a connection to a unix socket; one that blocks
 * gets 0, or EINVAL. Asks again after poll(2): something may have come before the shutdown. */
static NOINLINE long call_is_shut(Call *c) {
    bool accepts = c->attempt == try_accept;
    if (c->dir != DIR_READ || (!accepts && socket_option(c->fd, SO_TYPE) != SOCK_DGRAM))
        return -EAGAIN;
    long events = fd_poll_now(c->fd, POLLRDHUP);
    if (events <= 0 || !(events & POLLRDHUP)) return -EAGAIN;
    long r = call_attempt(c);
    return r != -EAGAIN ? r : accepts ? -EINVAL : receive_none(c);
}

/* No memory for the entry: one attempt with an entry of its own, in which nothing can wait. */
static NOINLINE long call_apart(Call *c) {
    Desc own = {0};
    c->d = &own;
    int r = call_begin_at(c);
    return r < 0 ? r : call_end(c, call_attempt(c));
}

long call_run(Call *c, int64_t deadline) {
    long r = call_begin(c);
    if (unlikely(r == -ENOMEM)) {
        r = call_apart(c);
        return r != -EAGAIN ? r : deadline <= os_now() ? -ETIMEDOUT : -ENOMEM;
    }
    if (unlikely(r < 0)) return r;
    deadline = wait_limit(c->m, deadline);
    if (c->plain && deadline == GORT_FOREVER && is_goroutine(c->m) && desc_drained(c->d, &c->edges))
        r = -EAGAIN;
    else r = call_attempt(c);
    while (unlikely(r == -EAGAIN)) {
        int over = wait_over(c->m, deadline);
        if (over) {
            r = over;
            break;
        }
        if (c->vain < UINT8_MAX) c->vain++;
        r = call_wait(c, deadline);
        if (r < 0) return r;
        r = call_attempt(c);
        if (unlikely(r == -EAGAIN)) r = call_is_shut(c);
    }
    return call_end(c, r);
}

long call_nowait(Call *c) {
    long r = call_begin(c);
    if (unlikely(r < 0)) return r == -ENOMEM ? call_apart(c) : r;
    return call_end(c, call_attempt(c));
}
