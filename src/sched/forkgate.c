/*
 * A child of fork has no lock that another thread of its parent holds.
 *
 * The child has a copy of the memory and one thread. While a runtime runs, the child may not use
 * it (base/fork.c), and needs only an intact heap: the forker takes the locks of the heap. Where
 * none runs, the child is a process like any other and may use everything. Every lock is held
 * inside a section (lock.h). So the fork waits for a moment in which no other thread is in one, and
 * keeps the others out until it is over:
 *
 *   the forker                              a section
 *   F1  forks++                             S1  locks++ (or rest = 0)
 *   F2  FORK into attn of each M                compiler barrier
 *   F3  barrier_everywhere                  S2  FORK in attn? Then rest = locks, wait until forks
 *   F4  wait until locks <= rest in each M      is 0, and again from S1
 *   F5  fork; forks--, and FORK goes
 *
 * S2 reads before or after F3 on its CPU. Before: F4 sees S1, and waits. After: S2 sees FORK. A new
 * thread lists its record and then adds 0 to `forks`; F1 adds 1 before F2 walks the list. The later
 * of the two additions sees what came before the earlier: F2 finds the record, or the thread sets
 * FORK itself. Threads that begin or end hold locks outside: those are taken after F4.
 *
 * A runtime that starts meanwhile ends the wait. A fork by a handler that interrupts a section does
 * not wait at all: another section may wait for this one's lock.
 *
 * While a runtime runs, libc's own locks are another matter: forklibc.c.
 */
#include "sched/forkgate.h"
#include "base/san.h"
#include "base/upstairs.h"
#include "mem/stack.h"
#include "mem/span.h"
#include "sched/body.h"
#include "sched/forklibc.h"
#include "sched/g.h"
#include "sched/m.h"
#include "sched/sched.h"

static uint32_t forks; /* atomic: under way */
static __thread struct {
    bool counted; /* in `forks` */
    bool locked;
    bool rests;                                    /* no other thread is in a section */
} mine __attribute__((tls_model("initial-exec"))); /* of the thread that forks */

/* S2 once more, until there is no fork. The mark is its thread's: the next forker counts it. */
void fork_gate_wait(M *m) {
    uint32_t rest = load_rlx(&m->rest);
    while (load_acq(&forks) != 0) {    /* pairs with F5 */
        store_rel(&m->rest, m->locks); /* pairs with F4 */
        while (load_acq(&forks) != 0) os_nap(20 * GORT_US);
        store_rlx(&m->rest, rest);
        fence_compiler(); /* F3 is the fence */
    }
    and_seq(&m->attn, ~(uint32_t)ATTN_FORK);
}

void fork_gate_joined(M *m) {
    if (unlikely(add_seq(&forks, 0) != 0)) or_seq(&m->attn, ATTN_FORK);
}

/* F4 for one M. False: a runtime has started. */
static bool await_rest(M *m) {
    while (load_acq(&m->alive) && load_acq(&m->locks) > load_acq(&m->rest)) {
        if (load_acq(&sched.busy)) return false;
        os_nap(20 * GORT_US);
    }
    return true;
}

/* F2 to F4. */
static bool await_all(M *self) {
    bool alone = true, rests = true;
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        if (m == self) continue;
        or_seq(&m->attn, ATTN_FORK); /* a record that is free may be a new thread's in a moment */
        alone = false;
    }
    if (!alone) barrier_everywhere();
    for (M *m = load_acq(&sched.all_ms); m && rests; m = m->all)
        if (m != self) rests = await_rest(m);
    return rests;
}

/* A handler forks: it has interrupted a section, or an unlock that a section waits for (mutex.c). A
 * pin is a section that holds no lock. */
static bool interrupts_section(M *m) {
    return m->locks > load_rlx(&m->rest) + m->pins || m->unlocking != NULL;
}

/* Not enter(), which may move the goroutine to another thread than the one that forks. */
static void before_fork(void) {
    M *self = getm();
    mine.locked = self == NULL || !interrupts_section(self);
    if (mine.locked) fork_wants_libc(self);
    mine.counted = mine.locked && !load_acq(&sched.busy);
    if (mine.counted) add_seq(&forks, 1);
    mine.rests = mine.counted && await_all(self);
    steady_begin();
    if (!mine.locked) return;
    g_fork(true);
    span_fork(true);
    m_fork(true);
}

static void unlock_after_fork(void) {
    if (mine.locked) {
        m_fork(false);
        span_fork(false);
        g_fork(false);
    }
    steady_end(getm());
}

static void after_fork_in_parent(void) {
    unlock_after_fork();
    if (mine.counted) sub_seq(&forks, 1);
    fork_had_libc();
}

/* As a section: locks are taken, and there is nobody to give way to. */
static void child_begins(void) {
    M *m = getm();
    if (m) m->locks++;
    if (upstairs.fork_child) upstairs.fork_child();
    m_forget_others();
    bodies_forget();
    if (m) m->locks--;
}

/* The thread that forked has another number in the child. Where no runtime runs it may go on with
 * gort there, beside a thread that starts one (init.c). */
static void after_fork_in_child(void) {
    M *m = getm();
    if (m) {
        body_forked(m->tp);
        m->tp = ARCH_THREAD_POINTER(); /* a body's, which is the thread's from here on */
    }
    fork_renumber();
    store_rlx(&forks, 0);
    unlock_after_fork();
    fork_had_libc();
    if (mine.rests) child_begins();
}

/* This fork has not waited for sections. If another thread was in one, its lock stays held here:
 * then the parent's waiters keep their places (gort(7)). */
static void bare_child(void) {
    store_rlx(&forks, 0);
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (m != getm() && load_rlx(&m->alive) && load_rlx(&m->locks) > load_rlx(&m->rest)) return;
    child_begins();
}

/* Behind these, base/fork.c's: the child's is to come last. */
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    upstairs.bare_child = bare_child;
    fork_watch();
}
