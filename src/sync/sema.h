/* Queues of sleepers, and the table of queues for objects too small to hold one. See sema.c. */
#ifndef SEMA_H
#define SEMA_H

#include "base/san.h"
#include "sched/ender.h"

/* One wait, in the frame of the waiting call. Valid while queued; a timed one until its owner,
 * under the lock of its queue, has taken it off or found it taken off. */
typedef struct Sleeper Sleeper;
/* Undoes the wait of a goroutine that will never run again: off the queue, and what it was granted
 * or woken for goes to the next sleeper. */
typedef void abandon_fn(Sleeper *s);
struct Sleeper {
    /* the queue's lock: */
    Sleeper *next, *prev;
    bool queued;
    bool notified; /* cond.c: woken before it was parked */
    bool parked;   /* cond.c */
    /* constant while queued: */
    bool timed;      /* has a deadline: a waker must claim it */
    uint32_t ticket; /* timed: of wait_begin() */
    G *gp;
    void *object; /* what the call waits for */
    abandon_fn *abandon;
    const void *key; /* the table: under which address it is queued */
    int64_t amount;  /* sem.c: permits wanted; close.c: the descriptor */
    /* Set by the waker that took it off, read by its owner after that: */
    bool taken;   /* woken, and not by its deadline */
    bool granted; /* it owns what it waited for */
    /* the bucket's lock, valid in the first sleeper of a key only: */
    Sleeper *last;     /* of the same key */
    Sleeper *below[2]; /* the firsts of other keys (sema.c) */
};

typedef struct SleepQ {
    Sleeper *first, *last;
} SleepQ;

/* Prepares a wait of the current G for object. In a section. Until sleeper_over() g->waiting is s
 * with the lowest bit set (a Sudog's is clear), for the end of a runtime. */
INLINE void sleeper_init(Sleeper *s, M *m, int64_t deadline, void *object, abandon_fn *abandon) {
    s->gp = self(m);
    s->queued = s->notified = s->parked = s->taken = s->granted = false;
    s->object = object;
    s->abandon = abandon;
    s->gp->waiting = (char *)s + 1;
    s->timed = deadline != GORT_FOREVER;
    if (s->timed) s->ticket = wait_begin(s->gp);
}

/* In the section in which the G found its wait ended; sleeper_park() does it. */
INLINE void sleeper_over(Sleeper *s) { s->gp->waiting = NULL; }

/* The runtime has ended: undoes gp's wait, before any stack goes, for the object may be on one. */
INLINE void sleeper_abandon(G *gp) {
    if (((uintptr_t)gp->waiting & 1) == 0) return;
    Sleeper *s = (Sleeper *)((char *)gp->waiting - 1);
    gp->waiting = NULL;
    s->abandon(s);
}

/* By the waker that took s off. False: the deadline was faster, and s needs no waking. */
INLINE bool sleeper_claim(Sleeper *s) {
    s->taken = !s->timed || wait_claim(s->gp, s->ticket);
    return s->taken;
}

/* Parks the current G, queued as s under l; unlocks l. After a timeout the caller takes s off. */
INLINE M *sleeper_park(M *m, Sleeper *s, Lock *l, int reason, int64_t deadline, int *ended) {
    *ended = 0;
    if (!s->timed) m = park(m, l, reason);
    else m = park_until(m, l, reason, deadline, s->ticket, ended);
    sleeper_over(s);
    return m;
}

/* After the unlock: those that a waker has taken off and claimed. */
INLINE void sleepers_ready(M *m, GList *list) {
    if (list->count == 1) ready(m, list->head);
    else if (list->count > 1) ready_list(m, list);
}

/* ---- a queue inside an object (cond.c, sem.c), under the object's lock ---------------------- */

INLINE void sleepq_push(SleepQ *q, Sleeper *s) {
    s->next = NULL;
    s->prev = q->last;
    if (q->last) q->last->next = s;
    else q->first = s;
    q->last = s;
    s->queued = true;
}

INLINE void sleepq_remove(SleepQ *q, Sleeper *s) {
    if (s->prev) s->prev->next = s->next;
    else q->first = s->next;
    if (s->next) s->next->prev = s->prev;
    else q->last = s->prev;
    s->queued = false;
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct SemaBucket {
    Lock lock;     /* RANK_PRIM */
    Sleeper *root; /* lock: of the first sleepers of all keys */
} ALIGNED(CACHE_LINE) SemaBucket;

#define SEMA_BUCKETS 251
extern SemaBucket sema_table[SEMA_BUCKETS];

INLINE uint64_t sema_hash(const void *key) {
    return (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15ULL;
}
/* By the middle of the hash: its highest bits are for the tree. */
INLINE SemaBucket *sema_bucket(const void *object) {
    return &sema_table[(uint32_t)(sema_hash(object) >> 24) % SEMA_BUCKETS];
}

/* With the bucket's lock held. The caller readies what it has popped without the lock. */
void sema_push(SemaBucket *b, Sleeper *s, const void *key, bool front);
Sleeper *sema_pop(SemaBucket *b, const void *key, bool *more);
void sema_remove(SemaBucket *b, Sleeper *s);
void sema_pop_all(SemaBucket *b, const void *key, GList *list);
/* Takes off s and all behind it. */
void sleepers_take(Sleeper *s, GList *list);
/* Without the lock, by the owner of s, whose wait is over: see "expire" in sema.c. mark: in the
 * object's word. False: a waker has taken s off. */
bool sema_withdraw(Sleeper *s, uint32_t *word, uint32_t mark);

/* For groups. sem.c: takes n permits, in a section of depth 1, which goes on. ctx.c: cancels c and
 * all below it, in a section; frees nothing. */
M *sem_acquire_in_section(M *m, gort_sem *sem, int64_t n, int64_t deadline, int *ended);
void ctx_cancel_in_section(gort_ctx *c, int cause);
/* gp's use of a context ends with it (ctx.c). In a section. */
void ctx_use_ends(G *gp);

/* True: this call may yield at once: not pinned, not nested in another section. */
INLINE bool may_yield(M *m) {
    return m->locks == 1 && m->pins == 0 && !m->plain && !m->world && m->curg != NULL;
}

/* The current G; outside of sections. */
INLINE G *current_g(void) {
    M *m = enter();
    G *gp = self(m);
    leave(m);
    return gp;
}

/* Grants the monitor's wish for the processor, in a call that needs no section. */
INLINE void poll_attention(void) {
    M *m = getm();
    if (m != NULL && unlikely(load_rlx(&m->attn) != 0) && m->locks == 0) leave(enter());
}

#endif
