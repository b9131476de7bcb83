/*
 * A call on a descriptor, as the rooms that make one see it: attempt.c (one attempt that cannot
 * block), wait.c (waits and tries again), posix.c (the POSIX mirrors), file.c (what cannot be
 * polled). It lives on the caller's stack, and a parked reader is little more than this.
 */
#ifndef IO_H
#define IO_H

#include "sched/netpoll.h"
#include "base/san.h"
#include "sched/sched.h"

typedef struct Call Call;

/* One attempt: a count, or -errno; -EAGAIN: would block. In a section, the entry's count of calls
 * held; both may be given back and taken again in between (c->m changes then). */
typedef long attempt_fn(Call *c);

struct Call {
    attempt_fn *attempt;
    int fd;
    uint8_t dir;
    bool plain;   /* a read that a drained socket may skip (attempt.c) */
    bool pace;    /* no edge will tell: try again by the clock */
    bool retried; /* it has waited: to the front of the queue */
    uint8_t vain; /* attempts so far that had to wait, up to 255 */
    /* seq stands: a call of several runs belongs to the descriptor it began with */
    bool begun;
    bool adrift; /* it has no life, since its number was being closed for long: see call_note */
    /* Arguments, as the attempt wants them. */
    int flags;
    socklen_t alen;
    void *buf;
    size_t n;
    struct sockaddr *sa;
    socklen_t *salen;
    int64_t offset; /* files: -1 for the descriptor's own position */
    /* wait.c's: */
    M *m;
    Desc *d;
    uint32_t seq;   /* of the entry, when the call began */
    uint32_t life;  /* of the number, when the hook's call began (desc_notes); 0: to be noted */
    uint32_t edges; /* of its direction, before the attempt */
    int64_t pause;  /* paced: how long the next pause is */
};

/* Makes the attempt until it gives something else than -EAGAIN, waiting in between. Begins and
 * ends the section. */
long call_run(Call *c, int64_t deadline);
/* One attempt. */
long call_nowait(Call *c);
/* Until c->n bytes have been moved (posix.c): c->n, or -errno; -ENODATA: the end came before. */
ssize_t move_all(Call *c, int64_t deadline);

/* The count of calls inside the kernel, in a section. False: the descriptor was closed since its
 * sequence was seq. */
NOINLINE void desc_wake_closer(M *m, Desc *d);
INLINE void desc_unref(M *m, Desc *d) {
    uint64_t now = sub_seq(&d->state, 1);
    if (unlikely((now & DESC_CLOSING) && !(now & DESC_REFS))) desc_wake_closer(m, d);
}
/* it was counted while the number was closing, or has another sequence */
NOINLINE bool desc_ref_late(M *m, Desc *d, uint32_t seq);
INLINE bool desc_ref(M *m, Desc *d, uint32_t seq) {
    uint64_t was = __atomic_fetch_add(&d->state, 1, __ATOMIC_SEQ_CST);
    if (likely(!(was & (DESC_CLOSING | DESC_GIVING)) && (uint32_t)(was >> 32) == seq)) return true;
    return desc_ref_late(m, d, seq);
}
/* Likewise, without a reference; with one, or in the entry's lock, it stays true. */
INLINE bool desc_lives(Desc *d, uint32_t seq) {
    uint64_t state = load_acq(&d->state);
    return !(state & DESC_CLOSING) && (uint32_t)(state >> 32) == seq;
}

/* The same for the descriptor that a call began with. */
void call_unref(Call *c);
void call_reref(Call *c); /* unconditionally */
bool call_closed(Call *c);
/* Around a system call that may sleep: counted as asleep instead, and back (close.c). */
void call_doze(Call *c);
void call_rouse(Call *c);

/* A call has had something other than EAGAIN: there may be more for the next in the queue. */
NOINLINE void desc_pass_on_slow(M *m, Desc *d, int dir);
INLINE void desc_pass_on(M *m, Desc *d, int dir) {
    if (unlikely(load_rlx(&d->q[dir].head) != NULL)) desc_pass_on_slow(m, d, dir);
}

/* Links w, of the current goroutine, which is going to park with d->lock. */
INLINE void desc_wait(M *m, Desc *d, int dir, Waiter *w, bool front) {
    G *gp = self(m);
    w->gp = gp;
    w->ticket = wait_begin(gp);
    w->group = NULL;
    w->wake_fd = -1;
    w->result = 0;
    waiter_link(&d->q[dir], w, front);
    if (dir == DIR_READ) store_rlx(&d->reader, gp);
    add_seq(&sched.poll_waiters, 1);
}

/* A read that came back with less than it asked for: attempt.c, "Drained sockets". */
INLINE uint32_t drained_word(uint32_t edges) { return edges << 1 | 1; }
INLINE void desc_note_drained(Desc *d, uint32_t edges) {
    if (load_rlx(&d->tcp)) store_rlx(&d->drained_at, drained_word(edges));
}
INLINE bool desc_drained(Desc *d, uint32_t *edges) {
    uint32_t word = load_rlx(&d->drained_at);
    *edges = load_acq(&d->edges[DIR_READ]); /* before hung: netpoll_event writes it after */
    return word == drained_word(*edges) && !load_rlx(&d->hung) && load_rlx(&d->tcp);
}

/* Before a call that keeps the kernel busy. Whoever runs after us has been away for long: fetches
 * the lines of its stack that a parked read uses, and the program's buffer above it. A hint: it may
 * be running elsewhere by now, or be gone; its record is a G all the same (g.c), and a prefetch
 * does not fault. */
INLINE void expect_next(M *m) {
    P *p = m->p;
    if (unlikely(p == NULL)) return; /* inside of a blocking call */
    uint32_t head = load_rlx(&p->head);
    if (head == load_rlx(&p->tail)) return;
    char *sp = load_rlx(&load_rlx(&p->ring[head % RING])->sp);
    __builtin_prefetch(sp, 1);
    __builtin_prefetch(sp + CACHE_LINE, 1);
    __builtin_prefetch(sp + 2 * CACHE_LINE, 1);
    __builtin_prefetch(sp + 3 * CACHE_LINE, 1);
    __builtin_prefetch(sp + 4 * CACHE_LINE, 1);
}

/* For TSan: who reads has seen what was written before. Which ends belong together is the kernel's
 * knowledge, so all of them are one. */
extern char io_order;

/* Readies what the poller or a close has claimed. In a section. */
void wake_list(M *m, GList *list);

#define sys6(nr, a, b, c, d, e, f) \
    os_sys((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* poll.c: gort_poll with a deadline. Outside of any section. */
struct pollfd;
int poll_until(struct pollfd *fds, unsigned long n, int64_t deadline);

/* attempt.c */
attempt_fn try_read, try_write, try_readv, try_writev, try_recv, try_send, try_recvmsg, try_sendmsg,
    try_peek_all, try_accept, try_connect;

/* file.c: c->buf, c->n, c->offset; an iovec where c->flags says so. Never -EAGAIN. */
enum { FILE_READ, FILE_WRITE, FILE_FSYNC };
enum { FILE_VECTOR = 1 };
long file_run(Call *c, int op);

#endif
