/* Channels, as select.c and the owners of channels see them. The protocol is in chan.c. */
#ifndef CHAN_H
#define CHAN_H

#include "sched/alloc.h"
#include "base/san.h"
#include "sync/free_later.h"
#include "sched/sched.h"

/* One wait on one channel, in the frame of the waiting call (of a large select: in its scratch
 * memory). Valid while queued; if claimable, until its owner has been back for it. */
enum { W_QUEUED, W_DROPPED /* its claim failed */, W_TAKEN /* its G is being readied */ };

typedef struct Sudog {
    /* c->lock: */
    struct Sudog *next, *prev;
    uint8_t state; /* W_... */
    /* Set before it is queued, constant after (sudog_init): */
    bool claim;     /* a deadline or another case may end the wait too: claim first */
    bool send;      /* on c->sendq */
    bool allocated; /* the first of a large select: all are quiet_alloc's memory */
    /* Set by the dequeuer, before ready(): */
    bool ok;         /* the value was handed over; else the channel was closed */
    uint32_t ticket; /* claim: of wait_begin() */
    G *g;
    void *elem; /* the value to send, or where it is to go (NULL: dropped) */
    struct gort_chan *c;
    struct Sudog *link; /* the next waiter of the same call (g->waiting is the first) */
    uint32_t index;     /* select: which case */
} Sudog;

typedef struct WaitQ {
    Sudog *first, *last;
} WaitQ;

/*
 *   |<----- 64 bytes: all that an unbuffered operation touches ---->|
 *   | capacity elem_size lock closed count   recvq   sendq          | head refs pins | buffer ...
 *
 * lock guards everything. looks_ready() reads what is written with store_rlx without it.
 */
enum { CHAN_FREED = 2 };
struct gort_chan {
    size_t capacity;  /* constant; a free object's links overwrite these two (alloc.c) */
    size_t elem_size; /* constant */
    Lock lock;
    uint32_t closed; /* 1; CHAN_FREED: released for the last time */
    size_t count;    /* elements in the buffer */
    WaitQ recvq, sendq;
    size_t head;                 /* where the oldest element is */
    uint32_t refs;               /* the program's references */
    uint32_t pins;               /* claimable waiters whose owner will come back to this channel */
    struct gort_chan *next_dead; /* no reference and no pin left: to be freed */
    Refs *timer;                 /* a gort_timer's that sends here and has one of refs; or NULL */
    char buffer[] ALIGNED(16);
} ALIGNED(CACHE_LINE);
_Static_assert(offsetof(struct gort_chan, head) == CACHE_LINE, "the hot fields are one line");

/* The runtime has ended and gp, with chan_waits(gp), will never run again: takes its waiters off
 * the channels, which may outlive its stack. Outside of sections, before the stack goes. */
void chan_abandon(G *gp);
INLINE bool chan_waits(G *gp) { return gp->waiting != NULL && ((uintptr_t)gp->waiting & 1) == 0; }

/* ---- shared by chan.c and select.c ----------------------------------------------------------- */

NORETURN void chan_used_late(const gort_chan *c);
/* -EPIPE. Fatal if c was released for the last time and its memory is still as it was. */
INLINE int chan_is_closed(const gort_chan *c) {
    if (unlikely(load_rlx(&c->closed) == CHAN_FREED)) chan_used_late(c);
    return -EPIPE;
}
/* c->lock. True: some waiter's wait has not been ended. */
INLINE bool has_live(const WaitQ *q) {
    for (const Sudog *w = q->first; w; w = w->next)
        if (!w->claim || load_acq(&w->g->ticket) == w->ticket) return true;
    return false;
}

/* c->lock. The timer that would send to nobody from now on, with a reference; or NULL. Its own
 * reference to c is the last, so it is there: timer_destroy takes c->lock before it goes. */
INLINE Refs *chan_unheard(gort_chan *c) {
    if (likely(c->timer == NULL) || c->refs != 1 || has_live(&c->recvq)) return NULL;
    return refs_try(c->timer) ? c->timer : NULL;
}
void timer_unheard(Refs *timer); /* ends it, and drops the reference; outside of sections */

void chan_free_list(gort_chan *dead); /* through next_dead; outside of sections */

NOINLINE void value_copy_long(void *to, const void *from, size_t n);
NOINLINE void value_zero(void *to, size_t n);

INLINE void value_copy(void *to, const void *from, size_t n) {
    if (likely(n == 8)) __builtin_memcpy(to, from, 8);
    else if (n == 4) __builtin_memcpy(to, from, 4);
    else if (n == 16) __builtin_memcpy(to, from, 16);
    else if (n != 0) value_copy_long(to, from, n);
}

/* All that its owner sets; a claimable one has a ticket, too, and a select's its index. */
INLINE void sudog_init(Sudog *w, G *gp, gort_chan *c, void *elem, bool send, bool claim) {
    w->claim = claim;
    w->send = send;
    w->allocated = false;
    w->ok = false;
    w->g = gp;
    w->elem = elem;
    w->c = c;
    w->link = NULL;
}

/* c->lock. At the tail: first come first served. */
INLINE void enqueue(WaitQ *q, Sudog *w) {
    w->next = NULL;
    w->prev = q->last;
    if (likely(q->last == NULL)) store_rlx(&q->first, w);
    else q->last->next = w;
    q->last = w;
    w->state = W_QUEUED;
}

/* c->lock, w queued on q. */
INLINE void unlink_waiter(WaitQ *q, Sudog *w) {
    if (w->prev) w->prev->next = w->next;
    else store_rlx(&q->first, w->next);
    if (w->next) w->next->prev = w->prev;
    else q->last = w->prev;
    w->state = W_DROPPED;
}

/* c->lock. The longest waiter whose wait is still open; NULL: none. The caller ends its wait: it
 * copies, sets ok, unlocks and readies w->g. The owner of a dropped waiter has a pin, and comes. */
INLINE Sudog *dequeue(gort_chan *c, WaitQ *q) {
    for (;;) {
        Sudog *w = q->first, *next;
        if (w == NULL) return NULL;
        store_rlx(&q->first, next = w->next);
        if (likely(next == NULL)) q->last = NULL;
        else next->prev = NULL;
        if (unlikely(w->claim)) {
            w->state = W_DROPPED;
            if (!wait_claim(w->g, w->ticket)) continue;
            c->pins--;
            w->g->param = w; /* tells a select which case won */
        }
        w->state = W_TAKEN;
        return w;
    }
}

/* What TSan is told; its reports show these names. Senders and receivers have a sync object each: a
 * sender acquires from receivers, not from other senders, or races between senders would be hidden.
 * A hand-over to a waiter syncs on its Sudog (w; NULL: the buffer). */
void channel_send(gort_chan *c, const void *value, Sudog *w);
void channel_recv(gort_chan *c, void *value, Sudog *w);
void channel_wait(gort_chan *c, Sudog *w);

INLINE char *slot(gort_chan *c, size_t i) { return c->buffer + i * c->elem_size; }

/* Where the next element goes; head + count may overflow for elements of size 0. */
INLINE size_t tail(gort_chan *c) {
    size_t room = c->capacity - c->head;
    return c->count < room ? c->head + c->count : c->count - room;
}

INLINE void sudog_hand_over(Sudog *w, G **wake) {
    w->ok = true;
    *wake = w->g;
}

/* c->lock. One attempt: 0, -EPIPE, or -EAGAIN (nothing changed). After the unlock: ready *wake. */
INLINE int send_locked(gort_chan *c, const void *value, G **wake) {
    if (unlikely(c->closed)) return chan_is_closed(c);
    if (c->recvq.first) {
        Sudog *w = dequeue(c, &c->recvq);
        if (likely(w != NULL)) {
            TSAN_TELL(channel_send, c, value, w);
            if (likely(w->elem != NULL)) value_copy(w->elem, value, c->elem_size);
            sudog_hand_over(w, wake);
            return 0;
        }
    }
    if (c->count == c->capacity) return -EAGAIN;
    TSAN_TELL(channel_send, c, value, NULL);
    value_copy(slot(c, tail(c)), value, c->elem_size);
    store_rlx(&c->count, c->count + 1);
    return 0;
}

/* c->lock, count > 0. The oldest element leaves; the longest blocked sender's enters. */
INLINE void take_buffered(gort_chan *c, void *value, G **wake) {
    char *at = slot(c, c->head);
    if (likely(value != NULL)) value_copy(value, at, c->elem_size);
    if (++c->head == c->capacity) c->head = 0;
    Sudog *w = c->sendq.first ? dequeue(c, &c->sendq) : NULL;
    if (likely(w == NULL)) {
        store_rlx(&c->count, c->count - 1);
        return;
    }
    tsan_release(w);
    value_copy(at, w->elem, c->elem_size); /* the place just left is the full buffer's tail */
    sudog_hand_over(w, wake);
}

/* c->lock. As send_locked. */
INLINE int recv_locked(gort_chan *c, void *value, G **wake) {
    if (c->count != 0) {
        TSAN_TELL(channel_recv, c, value, NULL);
        take_buffered(c, value, wake);
        return 0;
    }
    if (c->sendq.first) {
        Sudog *w = dequeue(c, &c->sendq);
        if (likely(w != NULL)) {
            TSAN_TELL(channel_recv, c, value, w);
            if (likely(value != NULL)) value_copy(value, w->elem, c->elem_size);
            sudog_hand_over(w, wake);
            return 0;
        }
    }
    if (likely(!c->closed)) return -EAGAIN;
    int r = chan_is_closed(c);
    TSAN_TELL(channel_recv, c, value, NULL);
    if (value) value_zero(value, c->elem_size);
    return r;
}

INLINE int attempt_locked(gort_chan *c, void *value, bool send, G **wake) {
    return send ? send_locked(c, value, wake) : recv_locked(c, value, wake);
}

/* Without the lock. True: lock and look. False: at one moment during the call the operation would
 * have blocked. For a receiver it is the load of the deciding word: count with a buffer (senders
 * wait only while it is full), sendq's head without. closed never returns to 0, so if it is 0 when
 * read last it was 0 then; the acquires keep the loads in order. Likewise for senders. */
INLINE bool looks_ready(gort_chan *c, bool send) {
    /* No branch: which case of a select is ready is unpredictable. */
    size_t idle = send ? c->capacity : 0;
    WaitQ *partners = send ? &c->recvq : &c->sendq;
    bool room = load_acq(&c->count) != idle;
    bool partner = load_acq(&partners->first) != NULL;
    return room | partner | (load_rlx(&c->closed) != 0);
}

INLINE void chan_enqueue(gort_chan *c, Sudog *w) {
    check(!c->closed);
    if (w->claim) c->pins++;
    TSAN_TELL(channel_wait, c, w);
    enqueue(w->send ? &c->sendq : &c->recvq, w);
}

/* After the dequeuer of w has resumed its owner. The channel may be gone. */
INLINE int sudog_result(Sudog *w) {
    tsan_acquire(w);
    return w->ok ? 0 : -EPIPE;
}

/* c->lock. A deadline or another case has ended the wait of w, claimable: its owner takes it off.
 * True: c has no user left, and the caller frees it outside of the section. */
INLINE bool sudog_give_up(gort_chan *c, Sudog *w) {
    check(w->state != W_TAKEN);
    if (w->state == W_QUEUED) unlink_waiter(w->send ? &c->sendq : &c->recvq, w);
    return --c->pins == 0 && c->refs == 0;
}

#endif
