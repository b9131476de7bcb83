/*
 * The reader/writer mutex, with Go's order of service.
 *
 * Writers exclude one another by an ordinary mutex (w_). Its owner announces itself, which holds
 * back new readers, and waits for the readers inside to leave. When it unlocks, it lets in every
 * reader that came meanwhile, and only then can the next writer announce itself. No side starves.
 *
 * The word (readers_):
 *
 *   WRITER    a writer owns it (no reader is in), or is announced (some still are)
 *   HELD      readers sleep in the table under &reader_sema_; only together with WRITER
 *   READER    times the number of readers that are in
 *
 * A reader gets in by a CAS that succeeds only if no writer is there. (Go counts it in first and
 * asks afterwards; a deadline would then have to undo what a writer may just be granting.) All that
 * concerns sleepers happens under the bucket's lock (sema.c), by direct hand-over: the writer that
 * lets readers in counts them in, and the last reader makes the announced writer the owner by
 * leaving, since WRITER is set already. Both queues are in the bucket of the rwmutex.
 *
 * A leaving goroutine touches nothing after its CAS out, except that a writer then unlocks w_,
 * which is part of its hold. So the last user may free the rwmutex.
 *
 * Orders: a reader's CAS in (acquire) pairs with the writer's CAS out (release); a writer's CAS in
 * (acquire) with the readers' CASes out (release), which form a release sequence on the word. The
 * bucket's lock, ready() and park() order hand-overs.
 */
#include "sched/sim.h"
#include "sync/mutex.h"

enum { WRITER = 1, HELD = 2, READER = 4 };

INLINE uint32_t *rw_word(gort_rwmutex *rw) { return (uint32_t *)&rw->readers_; }

/* Lets every held reader in; the caller readies the list without the lock. Bucket locked. */
static void admit_readers(gort_rwmutex *rw, SemaBucket *b, GList *list) {
    sema_pop_all(b, &rw->reader_sema_, list);
    uint32_t old = load_rlx(rw_word(rw)), next;
    do next = (old & ~(uint32_t)(WRITER | HELD)) + list->count * READER;
    while (!cas_rel(rw_word(rw), &old, next));
}

/* ---- readers -------------------------------------------------------------------------------- */

/* Gets in unless a writer is there. *old: what was found, or a guess. */
INLINE bool reader_enter(gort_rwmutex *rw, uint32_t *old) {
    while (!(*old & WRITER))
        if (cas_acq(rw_word(rw), old, *old + READER)) return true;
    return false;
}

/* A reader no longer queued was counted in, unless its deadline was faster. */
static void reader_abandon(Sleeper *s) {
    gort_rwmutex *rw = s->object;
    if (!sema_withdraw(s, rw_word(rw), HELD) && s->taken) gort_rwmutex_runlock(rw);
}

static NOINLINE int rlock_contended(gort_rwmutex *rw, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    SemaBucket *b = sema_bucket(rw);
    Sleeper s;
    M *m = enter();
    int ended = wait_over(m, deadline);
    if (ended) {
        leave(m);
        return ended;
    }
    lock(&b->lock, RANK_PRIM);
    uint32_t old = load_rlx(rw_word(rw));
    do {
        if (reader_enter(rw, &old)) {
            unlock(&b->lock);
            leave(m);
            return 0;
        }
    } while (!cas_acq(rw_word(rw), &old, old | HELD));
    sleeper_init(&s, m, deadline, rw, reader_abandon);
    sema_push(b, &s, &rw->reader_sema_, false);
    m = sleeper_park(m, &s, &b->lock, WAIT_RWMUTEX_R, deadline, &ended);
    if (ended) sema_withdraw(&s, rw_word(rw), HELD);
    leave(m);
    return ended; /* woken: counted in already */
}

EXPORT void gort_rwmutex_rlock(gort_rwmutex *rw) {
    uint32_t old = 0;
    SIM_POINT();
    if (unlikely(!reader_enter(rw, &old))) rlock_contended(rw, GORT_FOREVER);
    tsan_acquire(&rw->reader_sema_);
}

EXPORT int gort_rwmutex_rlock_until(gort_rwmutex *rw, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    uint32_t old = 0;
    int r = 0;
    if (unlikely(!reader_enter(rw, &old))) r = rlock_contended(rw, call_limit(deadline));
    if (r == 0) tsan_acquire(&rw->reader_sema_);
    return r;
}

EXPORT int gort_rwmutex_try_rlock(gort_rwmutex *rw) {
    if (in_forked_child()) return -ENOTCONN;
    uint32_t old = 0;
    if (!reader_enter(rw, &old)) return -EBUSY;
    tsan_acquire(&rw->reader_sema_);
    return 0;
}

/* Under the bucket's lock, so that an announced writer cannot expire and be replaced meanwhile. */
static NOINLINE void runlock_contended(gort_rwmutex *rw) {
    if (in_forked_child()) return;
    SemaBucket *b = sema_bucket(rw);
    bool more;
    Sleeper *s = NULL;
    M *m = enter();
    lock(&b->lock, RANK_PRIM);
    uint32_t old = load_rlx(rw_word(rw));
    do {
        if (old < READER) fatal("runlock of unlocked rwmutex");
    } while (!cas_acq_rel(rw_word(rw), &old, old - READER));
    if ((old & WRITER) && old < 2 * READER) s = sema_pop(b, &rw->writer_sema_, &more);
    /* NULL: the writer has just expired, and finds itself the owner */
    G *gp = s != NULL ? s->gp : NULL;
    unlock(&b->lock);
    if (gp != NULL) ready(m, gp);
    leave(m);
}

EXPORT void gort_rwmutex_runlock(gort_rwmutex *rw) {
    tsan_release(&rw->writer_sema_);
    uint32_t old = READER;
    while (!(old & WRITER) && old >= READER) {
        if (cas_rel(rw_word(rw), &old, old - READER)) {
            poll_attention();
            return;
        }
    }
    runlock_contended(rw);
}

/* ---- writers -------------------------------------------------------------------------------- */

/* The announced writer, queued as s, has run out of time. True: the last reader has left, and it
 * owns the rwmutex all the same. Else it withdraws, and lets in the readers it held back. */
static bool writer_expire(gort_rwmutex *rw, M *m, SemaBucket *b, Sleeper *s) {
    GList list = {0};
    lock(&b->lock, RANK_PRIM);
    if (s->queued) sema_remove(b, s);
    bool owner = load_acq(rw_word(rw)) < READER; /* pairs with the readers' release */
    if (!owner) admit_readers(rw, b, &list);
    unlock(&b->lock);
    if (list.count) ready_list(m, &list);
    return owner;
}

/* The writer holds w_, which is released too. */
static void writer_abandon(Sleeper *s) {
    gort_rwmutex *rw = s->object;
    bool owner = !s->queued;
    if (!owner) {
        M *m = enter();
        owner = writer_expire(rw, m, sema_bucket(rw), s);
        leave(m);
    }
    if (owner) gort_rwmutex_unlock(rw);
    else gort_mutex_unlock(&rw->w_);
}

/* With w_, readers inside: announces the writer, and waits for them to leave. */
static NOINLINE M *writer_wait(M *m, gort_rwmutex *rw, int64_t deadline, int *ended) {
    *ended = wait_over(m, deadline);
    if (*ended) return m;
    SemaBucket *b = sema_bucket(rw);
    Sleeper s;
    lock(&b->lock, RANK_PRIM);
    uint32_t old = load_rlx(rw_word(rw));
    while (!cas_acq(rw_word(rw), &old, old | WRITER)) {}
    if (old < READER) {
        unlock(&b->lock); /* they have left */
    } else {
        sleeper_init(&s, m, deadline, rw, writer_abandon);
        sema_push(b, &s, &rw->writer_sema_, false);
        m = sleeper_park(m, &s, &b->lock, WAIT_RWMUTEX_W, deadline, ended);
        if (*ended && writer_expire(rw, m, b, &s)) *ended = 0;
    }
    return m;
}

static void tsan_writer_enters(gort_rwmutex *rw) {
    tsan_acquire(&rw->reader_sema_);
    tsan_acquire(&rw->writer_sema_);
}

static int rwmutex_lock(gort_rwmutex *rw, int64_t deadline) {
    int r, ended = 0;
    uint32_t old = 0;
    M *m = mutex_lock_in_section(enter(), &rw->w_, deadline, WAIT_RWMUTEX_W, &r);
    if (r == 0) {
        if (unlikely(!cas_acq(rw_word(rw), &old, WRITER))) m = writer_wait(m, rw, deadline, &ended);
        if (ended) gort_mutex_unlock(&rw->w_);
        else tsan_writer_enters(rw);
    }
    leave(m);
    return ended ? ended : r;
}

/* Where it is free; no sections: in a child of fork, too. */
static bool writer_take(gort_rwmutex *rw) {
    uint32_t old = 0;
    if (load_rlx(rw_word(rw)) != 0 || !mutex_seize(&rw->w_)) return false;
    bool got = cas_acq(rw_word(rw), &old, WRITER);
    if (got) tsan_writer_enters(rw);
    else gort_mutex_unlock(&rw->w_);
    return got;
}

EXPORT void gort_rwmutex_lock(gort_rwmutex *rw) {
    if (unlikely(in_forked_child())) writer_take(rw);
    else rwmutex_lock(rw, GORT_FOREVER);
}

EXPORT int gort_rwmutex_lock_until(gort_rwmutex *rw, int64_t deadline) {
    return in_forked_child() ? -ENOTCONN : rwmutex_lock(rw, call_limit(deadline));
}

EXPORT int gort_rwmutex_try_lock(gort_rwmutex *rw) {
    if (in_forked_child()) return -ENOTCONN;
    M *m = enter();
    bool got = writer_take(rw);
    leave(m);
    return got ? 0 : -EBUSY;
}

/* In a section. */
static NOINLINE void rwmutex_unlock_contended(M *m, gort_rwmutex *rw, uint32_t old) {
    if (!(old & WRITER) || old >= READER) fatal("unlock of unlocked rwmutex");
    GList list = {0};
    SemaBucket *b = sema_bucket(rw);
    lock(&b->lock, RANK_PRIM);
    admit_readers(rw, b, &list);
    unlock(&b->lock);
    if (list.count) ready_list(m, &list);
}

EXPORT void gort_rwmutex_unlock(gort_rwmutex *rw) {
    uint32_t old = WRITER;
    bool child = in_forked_child();
    M *m = child ? NULL : enter();
    tsan_release(&rw->reader_sema_);
    bool alone = cas_rel(rw_word(rw), &old, 0);
    if (unlikely(!alone) && !child) rwmutex_unlock_contended(m, rw, old);
    gort_mutex_unlock(&rw->w_);
    if (!child) leave(m);
}
