/*
 * Channels.
 *
 * An operation that need not wait is one section, one lock, one copy, one unlock. A partner that
 * waits gets its value straight into its memory and is made ready.
 *
 *   1. One attempt under the lock (send_locked, recv_locked): a waiting partner first, then the
 *      buffer, then closed. If it worked: unlock, ready() the partner, done. After the unlock the
 *      channel is not touched: any thread that saw the effect may release it. So the woken side of
 *      a plain wait reads only its Sudog.
 *   2. It would block: queue a Sudog at the tail and park. park() unlocks once the stack has been
 *      left, so a dequeuer can ready the G of every Sudog it finds.
 *   3. The dequeuer of a Sudog owns the wake-up.
 *
 * Claims. Only a dequeuer ends a plain wait, under the lock. A wait with a deadline, and each wait
 * of a select, may also be ended without this lock, by the timer or another channel. The waits of
 * such a call share a ticket (sched.h), and a dequeuer claims it before it copies. If the claim
 * fails, it drops the Sudog and tries the next, or the buffer, under the same lock. So a value has
 * exactly one taker, a call that timed out has touched no memory, and no wake-up is lost.
 *
 * Invariants, at each unlock ("live" is queued and not yet claimed):
 *   closed                          =>  recvq and sendq are empty
 *   a live Sudog is on recvq        =>  count == 0
 *   a live Sudog is on sendq        =>  count == capacity
 *   refs == 0                       =>  no live Sudog
 *   pins  ==  claimable Sudogs not dequeued with success whose owner has not yet been back
 *
 * Lifetime. refs counts the program's references. A pin may outlive them: the owner of a claimable
 * Sudog that was not dequeued locks the channel once more, when the program may rightly have
 * released it (a select whose other case won). The channel is freed when both are 0. One reference
 * may be a timer's that sends here (time.c). When the program drops its last one, and nobody waits,
 * the release ends the timer, whose reference it was.
 *
 * Orders. The lock orders everything but looks_ready() (see there) and the contents of a Sudog
 * after the wake-up, which ready() and park() order.
 *
 * Departures from Go: deadlines are part of the operation; a send on a closed channel is -EPIPE,
 * not a panic; the last reference frees. In a child of fork (in_forked_child) nothing is touched.
 */
#include "sync/chan.h"
#include "sched/ender.h"
#include "sched/fastpath.h"

NOINLINE void value_copy_long(void *to, const void *from, size_t n) { memcpy(to, from, n); }

NOINLINE void value_zero(void *to, size_t n) {
    if (n) memset(to, 0, n);
}

/* ---- what TSan is told (chan.h) -------------------------------------------------------------- */

void channel_send(gort_chan *c, const void *value, Sudog *w) {
    __tsan_acquire(w ? (void *)w : &c->recvq);
    if (value && c->elem_size) __tsan_read_range((void *)value, (long)c->elem_size);
    __tsan_release(w ? (void *)w : &c->sendq);
}

void channel_recv(gort_chan *c, void *value, Sudog *w) {
    __tsan_acquire(w ? (void *)w : &c->sendq);
    if (value && c->elem_size) __tsan_write_range(value, (long)c->elem_size);
    __tsan_release(w ? (void *)w : &c->recvq);
}

void channel_wait(gort_chan *c, Sudog *w) {
    if (w->elem && c->elem_size && w->send) __tsan_read_range(w->elem, (long)c->elem_size);
    if (w->elem && c->elem_size && !w->send) __tsan_write_range(w->elem, (long)c->elem_size);
    __tsan_release(w);
    __tsan_release(w->send ? &c->sendq : &c->recvq);
}

/* ---- a channel's life ------------------------------------------------------------------------ */

EXPORT gort_chan *gort_chan_new(size_t elem_size, size_t capacity) {
    size_t size;
    if (in_forked_child() || __builtin_mul_overflow(elem_size, capacity, &size) ||
        size > PTRDIFF_MAX - sizeof(gort_chan) - 2 * CACHE_LINE)
        return NULL;
    size += offsetof(gort_chan, buffer);
    if (size < sizeof(gort_chan)) size = sizeof(gort_chan);
    gort_chan *c = quiet_alloc(size);
    if (c == NULL) return NULL;
    *c = (gort_chan){.capacity = capacity, .elem_size = elem_size, .refs = 1};
    return c;
}

static void chan_free(gort_chan *c) {
    store_rlx(&c->closed, CHAN_FREED); /* chan_is_closed tells later users */
    quiet_free(c);
}

void chan_free_list(gort_chan *dead) {
    for (gort_chan *c; (c = dead) != NULL;) {
        dead = c->next_dead;
        chan_free(c);
    }
}

NOINLINE void chan_used_late(const gort_chan *c) {
    fatal("channel %p is used after its last release", (const void *)c);
}

EXPORT gort_chan *gort_chan_retain(gort_chan *c) {
    if (in_forked_child() || c == NULL) return NULL;
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    c->refs++;
    unlock(&c->lock);
    leave(m);
    return c;
}

EXPORT void gort_chan_release(gort_chan *c) {
    if (in_forked_child() || c == NULL) return;
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    if (unlikely(c->refs == 0)) fatal("channel %p released more often than retained", (void *)c);
    bool last = --c->refs == 0;
    if (last && unlikely(has_live(&c->recvq) || has_live(&c->sendq)))
        fatal("releasing a channel on which somebody waits");
    last = last && c->pins == 0;
    Refs *unheard = chan_unheard(c);
    unlock(&c->lock);
    leave(m);
    if (last) chan_free(c);
    if (unlikely(unheard != NULL)) timer_unheard(unheard);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* In a section. A NULL channel is never ready. */
INLINE int wait_nil(M *m, int reason, int64_t deadline) {
    deadline = wait_limit(m, deadline);
    while (deadline == GORT_FOREVER) m = park(m, NULL, reason); /* nothing readies it */
    int r = wait_over(m, deadline);
    if (r == 0) m = park_until(m, NULL, reason, deadline, wait_begin(self(m)), &r);
    leave(m);
    return r;
}

/* c->lock, in a section; the attempt has failed. Waits without a claim. */
INLINE int chan_wait_plain(M *m, gort_chan *c, void *elem, bool send) {
    G *gp = self(m);
    Sudog w;
    sudog_init(&w, gp, c, elem, send, false);
    gp->waiting = &w;
    chan_enqueue(c, &w);
    returns_apart(m);
    m = park_straight(m, &c->lock, send ? WAIT_CHAN_SEND : WAIT_CHAN_RECV);
    gp->waiting = NULL;
    int r = sudog_result(&w);
    leave(m);
    return r;
}

/* As chan_wait_plain; a deadline may end the wait. */
INLINE int chan_wait_until(M *m, gort_chan *c, void *elem, bool send, int64_t deadline) {
    int ended = wait_over(m, deadline);
    if (ended) {
        unlock(&c->lock);
        leave(m);
        return ended;
    }
    G *gp = self(m);
    Sudog w;
    sudog_init(&w, gp, c, elem, send, true);
    w.ticket = wait_begin(gp);
    gp->waiting = &w;
    chan_enqueue(c, &w);
    bool dead = false;
    m = park_until(m, &c->lock, send ? WAIT_CHAN_SEND : WAIT_CHAN_RECV, deadline, w.ticket, &ended);
    gp->waiting = NULL;
    int r = ended;
    if (r == 0) {
        r = sudog_result(&w);
    } else {
        lock(&c->lock, RANK_PRIM);
        dead = sudog_give_up(c, &w);
        unlock(&c->lock);
    }
    leave(m);
    if (dead) chan_free(c);
    return r;
}

/* Backtraces show these in the place of the public call. */
static RETURNS_APART int send_waits(M *m, gort_chan *c, void *elem) __asm__("gort_chan_send.waits");
static int send_waits(M *m, gort_chan *c, void *elem) { return chan_wait_plain(m, c, elem, true); }
static RETURNS_APART int recv_waits(M *m, gort_chan *c, void *elem) __asm__("gort_chan_recv.waits");
static int recv_waits(M *m, gort_chan *c, void *elem) { return chan_wait_plain(m, c, elem, false); }
static NOINLINE int send_until(M *m, gort_chan *c, void *elem,
                               int64_t deadline) __asm__("gort_chan_send.until");
static int send_until(M *m, gort_chan *c, void *elem, int64_t deadline) {
    return chan_wait_until(m, c, elem, true, deadline);
}
static NOINLINE int recv_until(M *m, gort_chan *c, void *elem,
                               int64_t deadline) __asm__("gort_chan_recv.until");
static int recv_until(M *m, gort_chan *c, void *elem, int64_t deadline) {
    return chan_wait_until(m, c, elem, false, deadline);
}
static NOINLINE int send_nil(M *m, int64_t deadline) __asm__("gort_chan_send.nil");
static int send_nil(M *m, int64_t deadline) { return wait_nil(m, WAIT_CHAN_SEND_NIL, deadline); }
static NOINLINE int recv_nil(M *m, int64_t deadline) __asm__("gort_chan_recv.nil");
static int recv_nil(M *m, int64_t deadline) { return wait_nil(m, WAIT_CHAN_RECV_NIL, deadline); }

/* c->lock, in a section; the attempt has failed. */
INLINE int chan_wait(M *m, gort_chan *c, void *elem, bool send, int64_t deadline) {
    if (deadline == GORT_FOREVER && likely(!(self(m)->odd & ODD_USES)))
        return send ? send_waits(m, c, elem) : recv_waits(m, c, elem);
    deadline = wait_limit(m, deadline);
    return send ? send_until(m, c, elem, deadline) : recv_until(m, c, elem, deadline);
}

/* For a waiter of a G that will not run again. True: free its channel. */
static bool sudog_abandon(Sudog *w) {
    gort_chan *c = w->c;
    bool last = false;
    if (w->state == W_TAKEN) return false; /* no pin: the channel may be gone */
    lock(&c->lock, RANK_PRIM);
    if (w->claim && w->state != W_TAKEN) last = sudog_give_up(c, w);
    else if (w->state == W_QUEUED) unlink_waiter(w->send ? &c->sendq : &c->recvq, w);
    unlock(&c->lock);
    return last;
}

void chan_abandon(G *gp) {
    gort_chan *dead = NULL;
    Sudog *first = gp->waiting;
    M *m = enter();
    for (Sudog *w = first, *next; w; w = next) {
        next = w->link;
        if (sudog_abandon(w)) w->c->next_dead = dead, dead = w->c;
    }
    gp->waiting = NULL;
    leave(m);
    if (first->allocated) quiet_free(first);
    chan_free_list(dead);
}

/* ---- the operations -------------------------------------------------------------------------- */

INLINE int send_or_recv(gort_chan *c, void *value, bool send, int64_t deadline) {
    G *wake = NULL;
    M *m = enter_here();
    if (unlikely(m == NULL)) return -ENOTCONN;
    if (unlikely(c == NULL)) return send ? send_nil(m, deadline) : recv_nil(m, deadline);
    lock(&c->lock, RANK_PRIM);
    int r = attempt_locked(c, value, send, &wake);
    if (unlikely(r == -EAGAIN)) return chan_wait(m, c, value, send, deadline);
    unlock(&c->lock);
    if (wake) ready_straight(m, wake);
    leave(m);
    return r;
}

EXPORT int gort_chan_send(gort_chan *c, const void *value) {
    return send_or_recv(c, (void *)value, true, GORT_FOREVER);
}
EXPORT int gort_chan_recv(gort_chan *c, void *value) {
    return send_or_recv(c, value, false, GORT_FOREVER);
}
EXPORT int gort_chan_send_until(gort_chan *c, const void *value, int64_t deadline) {
    return send_or_recv(c, (void *)value, true, deadline);
}
EXPORT int gort_chan_recv_until(gort_chan *c, void *value, int64_t deadline) {
    return send_or_recv(c, value, false, deadline);
}

/* A section even where it needs none: a loop that polls must be preemptible. */
INLINE int chan_try(gort_chan *c, void *value, bool send) {
    G *wake = NULL;
    int r = -EAGAIN;
    M *m = enter_here();
    if (unlikely(m == NULL)) return -ENOTCONN;
    if (c != NULL && looks_ready(c, send)) {
        lock(&c->lock, RANK_PRIM);
        r = attempt_locked(c, value, send, &wake);
        unlock(&c->lock);
        if (wake) ready(m, wake);
    }
    leave(m);
    return r;
}

EXPORT int gort_chan_try_send(gort_chan *c, const void *value) {
    return chan_try(c, (void *)value, true);
}
EXPORT int gort_chan_try_recv(gort_chan *c, void *value) { return chan_try(c, value, false); }

static void wake_all(gort_chan *c, WaitQ *q, GList *list) {
    for (Sudog *w; (w = dequeue(c, q)) != NULL;) {
        tsan_acquire(w);
        if (!w->send && w->elem) value_zero(w->elem, c->elem_size);
        tsan_release(w);
        glist_push(list, w->g);
    }
}

EXPORT int gort_chan_close(gort_chan *c) {
    if (in_forked_child()) return -ENOTCONN;
    if (c == NULL) fatal("close of a NULL channel");
    GList list = {0};
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    int r = c->closed ? chan_is_closed(c) : 0;
    if (r == 0) {
        tsan_release(&c->sendq);
        store_rlx(&c->closed, 1);
        wake_all(c, &c->recvq, &list);
        wake_all(c, &c->sendq, &list);
    }
    unlock(&c->lock);
    if (list.head) ready_list(m, &list);
    leave(m);
    return r;
}

EXPORT size_t gort_chan_len(gort_chan *c) {
    if (in_forked_child() || c == NULL) return 0;
    M *m = enter();
    size_t n = load_rlx(&c->count);
    leave(m);
    return n;
}

EXPORT size_t gort_chan_cap(gort_chan *c) {
    return in_forked_child() || c == NULL ? 0 : c->capacity;
}
