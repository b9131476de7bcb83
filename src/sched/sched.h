/*
 * The scheduler as the rooms above it see it. Primitives (channels, locks, I/O, contexts) know
 * this page and timer.h, nothing else: no P, no run queue.
 *
 * Every public call is a section:
 *
 *     M *m = enter();              nothing preempts this thread from here on
 *     lock(&c->lock, RANK_PRIM);
 *     ...
 *     m = park(m, &c->lock, WAIT_CHAN_RECV);   unlocks once the stack is left; comes back
 *     ...                                      perhaps on another thread: use the m it returns
 *     leave(m);
 *
 * Plain threads take the same path: self(m) is then the thread's pseudo-G, park() sleeps on a
 * futex, ready() wakes it. The primitives need not know.
 */
#ifndef SCHED_H
#define SCHED_H

#include "base/fork.h"
#include "sched/forkgate.h"
#include "sched/switch.h"
#include "sched/timer.h"

NOINLINE M *enter_slow(M *m);  /* preempt.c: attn was set */
NOINLINE M *enter_asked(M *m); /* the same, unless the section is inside of another */
NOINLINE M *enter_again(M *m); /* enter_here: attn was set, or this may be a child */
NOINLINE M *enter_first(void); /* enter_here: the thread's first call */
NOINLINE void leave_slow(M *m);
NOINLINE M *m_adopt(void); /* m.c: this plain thread's M, made on its first call */

/* In a section a P belongs to one M: what the protocols of retake.c and preempt.c are for. */
INLINE bool owns_its_p(M *m) { return m->p == NULL || load_acq(&m->p->m) == m; }

/* Begins a section. In a child of fork, and after no runtime, it works all the same. */
INLINE M *enter(void) {
    M *m = getm();
    if (unlikely(m == NULL)) m = m_adopt();
    m->locks++;
    fence_compiler(); /* pairs with the monitor's membarrier (preempt.c) */
    if (unlikely(load_rlx(&m->attn) != 0)) m = enter_asked(m);
    check(owns_its_p(m));
    return m;
}

/* As enter(); NULL in a child, which has no runtime (fork.h). One comparison asks both questions:
 * attn is 0 and process.same is 1 unless there is a request or this may be a child. */
INLINE M *enter_here(void) {
    M *m = getm();
    if (unlikely(m == NULL)) return enter_first();
    m->locks++;
    fence_compiler(); /* as in enter() */
    if (unlikely(load_rlx(&m->attn) >= process.same)) return enter_again(m);
    check(owns_its_p(m));
    return m;
}

INLINE void leave(M *m) {
    check(m == getm() && m->locks > 0 && owns_its_p(m));
    fence_compiler();
    sub_own_rel(&m->locks, 1); /* orders the section before a take (preempt.c, R3) */
    fence_compiler();
    if (unlikely(load_rlx(&m->attn) != 0)) leave_slow(m);
}

/* The section of a plain thread that has slept, or of a call that has ended, counts again. Pairs
 * with the barrier in await_sections() (init.c): it sees the rest gone, or this section sees that
 * the runtime has ended. */
INLINE void section_resumes(M *m) {
    store_rlx(&m->rest, 0);
    fence_compiler();
    if (unlikely(load_rlx(&m->attn) & ATTN_FORK)) fork_gate_wait(m);
}

/* Every store before it is seen by every section that begins after it, and the other way round.
 * With a kernel that has no membarrier a moment passes in which each processor, ours too, has
 * written its stores and every thread that was off has passed a barrier. */
INLINE void barrier_everywhere(void) {
    if (os_membarrier() != 0) os_nap(GORT_MS);
}

/* The current G, or the pseudo-G of this plain thread. In a section. */
INLINE G *self(M *m) { return m->curg; }
INLINE bool is_goroutine(M *m) { return !m->plain; }
/* The thread's descriptor table is the runtime's. A plain thread, and one that a goroutine is
 * locked to, may have a table of its own (unshare(2)). */
INLINE bool shares_numbers(M *m) { return !m->plain && m->lockedg == NULL; }

/* A goroutine's, in a section: it has announced a blocking call, or handed its P off for one. */
INLINE bool in_blocking_call(M *m) {
    return m->p == NULL || load_rlx(&m->curg->status) == G_SYSCALL;
}
/* The primitives touch no P. What they ask of theirs, in a section: */

/* Its number. False: there is none, on a plain thread or inside a blocking call. */
INLINE bool p_number(const M *m, uint32_t *number) {
    if (m->p == NULL) return false;
    *number = m->p->id;
    return true;
}
/* It has no other goroutine to run. */
INLINE bool runs_alone(const M *m) {
    P *p = m->p;
    return p != NULL && load_rlx(&p->head) == load_rlx(&p->tail) && load_rlx(&p->runnext) == NULL;
}
/* Before a call that keeps the kernel busy: prefetches what a parked read uses of the next
 * goroutine's stack, and the program's buffer above it. The goroutine may run elsewhere by now or
 * be gone: its record is a G all the same (g.c), and a prefetch does not fault. */
INLINE void expect_next(M *m) {
    P *p = m->p;
    if (unlikely(p == NULL)) return; /* inside a blocking call */
    uint32_t head = load_rlx(&p->head);
    if (head == load_rlx(&p->tail)) return;
    char *sp = load_rlx(&load_rlx(&p->ring[head % RING])->sp);
    for (int i = 0; i < 5; i++) __builtin_prefetch(sp + i * CACHE_LINE, 1);
}

/* Why a goroutine may not end, or stop the world, now; NULL: it may. In a section, which counts. */
const char *unfinished(M *m); /* sched.c */

/*
 * Parks the current G: status waiting, leave the stack, and only then unlock l (may be NULL). In a
 * section of depth 1, never pinned. Another party must ready() it exactly once. Returns the M it
 * was resumed on, in a section.
 */
void *park_begin(M *m, Lock *l, int reason); /* NULL: a plain thread, it has waited */
INLINE M *park(M *m, Lock *l, int reason) {
    G *gp = m->curg;
    void *next = park_begin(m, l, reason);
    return likely(next != NULL) ? switch_from(m, gp, next) : m;
}

/* The general form: commit(m, arg) runs after the stack was left, on whatever runs next on this
 * M, and must not park or touch m->p's queues other than by ready(). */
void *park_commit_begin(M *m, commit_fn *commit, void *arg, int reason);
INLINE M *park_commit(M *m, commit_fn *commit, void *arg, int reason) {
    G *gp = m->curg;
    void *next = park_commit_begin(m, commit, arg, reason);
    return likely(next != NULL) ? switch_from(m, gp, next) : m;
}

/*
 * Waits that several parties may end (a waker, a deadline, the other cases of a select) are
 * decided by one claim. wait_begin() opens a new wait of the current G and gives its ticket;
 * a party that wants to end it calls wait_claim(gp, ticket), and only the one that gets true may
 * ready(gp). G records are type-stable, so a late claimer with an old ticket does no harm.
 */
INLINE uint32_t wait_begin(G *gp) {
    uint32_t t = (load_rlx(&gp->ticket) + 2) & ~(uint32_t)1;
    store_rel(&gp->ticket, t);
    return t;
}
INLINE bool wait_claim(G *gp, uint32_t ticket) {
    uint32_t expect = ticket;
    return cas_acq_rel(&gp->ticket, &expect, ticket | 1);
}

/*
 * As park(), with a deadline. The wait was opened with wait_begin() and every waker claims it.
 * *ended: 0, or why no waker ended it: -ETIMEDOUT, or the error of the context in use (ender.h).
 * The caller then takes itself off whatever queue it is on. A deadline of GORT_FOREVER arms
 * nothing. The caller has tested the deadline before (wait_over).
 */
NOINLINE M *park_timed(M *m, Lock *l, commit_fn *commit, void *arg, int reason, int64_t deadline,
                       uint32_t ticket, int *ended);
INLINE M *park_until(M *m, Lock *l, int reason, int64_t deadline, uint32_t ticket, int *ended) {
    *ended = 0;
    if (deadline == GORT_FOREVER) return park(m, l, reason);
    return park_timed(m, l, NULL, NULL, reason, deadline, ticket, ended);
}
INLINE M *park_commit_until(M *m, commit_fn *commit, void *arg, int reason, int64_t deadline,
                            uint32_t ticket, int *ended) {
    *ended = 0;
    if (deadline == GORT_FOREVER) return park_commit(m, commit, arg, reason);
    return park_timed(m, NULL, commit, arg, reason, deadline, ticket, ended);
}

/* Makes a waiting G runnable: into the LIFO slot of m's P, or to the global queue where m has
 * none, or wakes its thread if it is a pseudo-G. In a section; holding no lock above RANK_TIMERS.
 * Never blocks. */
void ready(M *m, G *gp);
/* As ready, but to the tail of the queue (Go's readyWithTime without handoff). */
void ready_tail(M *m, G *gp);
/* Makes a whole list ready at once (poller, broadcast). */
void ready_list(M *m, GList *list);
/* To the tail of the global queue; runs others. Section depth 1. */
void *yield_begin(M *m); /* NULL: nobody else wants to run */
INLINE M *yield(M *m) {
    G *gp = m->curg;
    void *next = yield_begin(m);
    return likely(next != NULL) ? switch_from(m, gp, next) : m;
}
/* ready, and the current goroutine yields its slice to gp at once (direct hand-over, Go's
 * semrelease with handoff). Section depth 1; returns the M. */
INLINE M *ready_and_yield(M *m, G *gp) {
    bool thread = (gp->flags & GF_THREAD) != 0;
    ready(m, gp);
    if (thread || m->plain || m->locks != 1 || m->p == NULL || m->pins) return m;
    return yield(m);
}

/* Starts a goroutine: what gort_go does, for the rooms above (timers, wait groups). 0 or -errno.
 * In a section. */
int go_start(M *m, const gort_attr *attr, gort_fn *fn, void *arg, const void *copy, size_t size,
             uintptr_t pc);
int go_on_body(M *m, Stack *s, const char *name, gort_fn *fn, void *arg, uintptr_t pc);

NORETURN void ends_in_child(void); /* go.c: the current goroutine ends in a child */

/* Blocking the thread on purpose (syscall.c): between them the M has no P and the section is
 * left. Returns the M. For files, resolvers. */
M *block_begin(M *m);
M *block_end(M *m);
/* Likewise, for what is expected to be short: the P stays until the monitor takes it. A goroutine
 * that is not pinned, section depth 1, or a plain thread. */
M *syscall_begin(M *m);
M *syscall_end(M *m);

#endif
