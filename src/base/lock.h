/*
 * Two ways for a thread to wait for a thread.
 *
 * Lock   protects a few dozen instructions: one word, taken by an exchange and given back by a
 *        release store. A waiter stays away for a while, then yields the CPU, then naps (lock.c).
 *        Only the kernel can delay a holder (the runtime never preempts a section), and naps bound
 *        that harm.
 * Note   one-shot sleep and wake-up of one thread, on a futex.
 *
 * A holder is always inside a section (m->locks > 0), never calls malloc or stdio, and takes locks
 * in the order of their ranks, which a debug build checks (lockrank.c).
 */
#ifndef LOCK_H
#define LOCK_H

#include "arch.h"
#include "base/atomic.h"

/* The one lock order: a holder takes only locks of a higher rank, or of the same by address. */
enum {
    RANK_NONE,
    RANK_WORLD,  /* stop-the-world, maxprocs */
    RANK_RETAKE, /* monitor against stop-the-world */
    RANK_TIMER,  /* a gort_timer: held while it fires, which sends or starts a goroutine */
    RANK_PRIM,   /* channels, semaphores' buckets, conditions: several at once by address */
    RANK_CTX,
    RANK_POLL,   /* a descriptor's entry */
    RANK_TIMERS, /* a heap */
    RANK_SCHED,  /* the scheduler: global queue, idle lists */
    RANK_STACK,  /* slabs of stacks and of Gs */
    RANK_LEAF
};

typedef struct Lock {
    uint32_t word;
} Lock;

void lock_slow(Lock *l);
#ifdef GORT_CHECKED
void lockrank_take(Lock *l, int rank);
void lockrank_drop(Lock *l);
#else
#define lockrank_take(l, rank) ((void)(rank))
#define lockrank_drop(l) ((void)0)
#endif

INLINE void lock(Lock *l, int rank) {
    lockrank_take(l, rank);
    if (unlikely(xchg_acq(&l->word, 1) != 0)) lock_slow(l);
}

INLINE bool try_lock(Lock *l, int rank) {
    if (xchg_acq(&l->word, 1) != 0) return false;
    lockrank_take(l, rank);
    return true;
}

INLINE void unlock(Lock *l) {
    lockrank_drop(l);
    check(load_rlx(&l->word) == 1);
    store_rel(&l->word, 0); /* pairs with the exchange of the next holder */
}

typedef struct Note {
    uint32_t word;
} Note;

/* note_wake may come before note_sleep, which consumes it. note_clear: before first use only. */
INLINE void note_clear(Note *n) { store_rlx(&n->word, 0); }
void note_wake(Note *n);
void note_sleep(Note *n);
bool note_sleep_until(Note *n, int64_t deadline); /* true: woken */

#endif
