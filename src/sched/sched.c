/*
 * The heart: park, ready, yield, and the switch.
 *
 * A goroutine that blocks leaves its stack, and another continues on this thread. It may be made
 * ready, and run elsewhere, only after its stack was left. So what is to be done at that moment
 * (unlock the channel, queue the G, free it) is noted in M, and the side that continues does it
 * behind the switch: finish_switch(). The switch goes straight to the next goroutine where it is
 * plain to see (pick.h), otherwise to g0, the thread's own stack, whose loop finds one (find.c).
 *
 * Sections: a goroutine switches away at depth 1 (m->locks == 1) and the one that continues finds
 * depth 1. A new goroutine's entry leaves the section; g0 stays in it. errno is saved in the G by
 * the side that leaves and restored by the side that comes back.
 */
#include "sched/sched.h"
#include "sched/g.h"
#include "sched/globalq.h"
#include "sched/goexit.h"
#include "sched/body.h"
#include "sched/bound.h"
#include "sched/ender.h"
#include "sched/schedule.h"
#include "sched/threadmaker.h"
#include "sched/pick.h"
#include "sched/preempt.h"
#include "sched/runq.h"
#include "base/san.h"
#include "sched/sim.h"
#include "mem/compact_stack.h"
#include "sched/preferred.h"
#include "mem/split/split.h"
#include "sched/fastpath.h"
#include "sched/trace.h"
#include "sched/wake.h"

/* ---- switching ------------------------------------------------------------------------------ */

NOINLINE void finish_commit(M *m) {
    commit_fn *commit = m->commit;
    m->commit = NULL;
    commit(m, m->commit_arg);
}

/* ASan is told of the new stack while this is still the old one: its two calls belong around a
 * switch, and nothing that it watches happens in between. A goroutine that ends also gives back the
 * memory where ASan keeps frames apart from the stack. */
static void asan_switch(M *m, G *from, G *to) {
    void **fake = from ? &from->stack->san_fiber : &m->san_fiber;
    if (from && load_rlx(&from->status) == G_DEAD) fake = NULL;
    if (to) __sanitizer_start_switch_fiber(fake, to->stack->lo, stack_span(to->stack));
    else
        __sanitizer_start_switch_fiber(fake, m->stack_lo,
                                       (size_t)((char *)m->stack_hi - (char *)m->stack_lo));
    __sanitizer_finish_switch_fiber(to ? to->stack->san_fiber : m->san_fiber, NULL, NULL);
}

/* A goroutine may use its thread's variables: it comes behind the thread's start (thread_begin). */
static void tsan_switch(M *m, G *to) {
    __tsan_switch_to_fiber(to ? to->stack->san_fiber : m->san_fiber, 1);
    __tsan_acquire(&m->tp);
}

void san_switch(M *m, G *from, G *to) {
    if (tsan_on()) tsan_switch(m, to);
    else asan_switch(m, from, to);
}

/* gp is next, has never run, and there is no stack at hand for it. To make one is a system call and
 * a page fault, during which m->unlock (in a yield sched.lock) would stay held. g0 drops the lock
 * first. */
INLINE bool unfurnished(M *m, G *gp) {
    return unlikely(gp->sp == NULL) &&
           unlikely((gp->flags & GF_COMPACT ? m->p->small : m->p->stacks) == NULL);
}
static NOINLINE void *by_way_of_g0(M *m, G *next) {
    m->nextg = next;
    m->inherit = true; /* who picked it has begun a new slice, or not */
    m->curg = NULL;
    return m->g0sp;
}

static long get_stack(void *m) { return (long)stack_get(m); }
Stack *stack_get_with_room(M *m) { return (Stack *)call_with_room(m, get_stack, m); }

static NOINLINE void attach_stack(M *m, G *gp) {
    check(m->unlock == NULL || !unfurnished(m, gp));
    Stack *s = gp->flags & GF_COMPACT ? compact_get(m) : stack_get_with_room(m);
    stack_forget(s);
    gp->stack = s;
    gp->sp = arch_first_frame(stack_top(s), goroutine_entry, NULL);
}

/* gp is next on m. */
INLINE void take_on(M *m, G *gp) {
    check(m->nextg == NULL);
    if (unlikely(gp->sp == NULL)) attach_stack(m, gp);
    now_runs(m, m->p, gp);
}

/* The same, straight behind the one that leaves. */
INLINE void put_on(M *m, G *gp) {
    take_on(m, gp);
    trace_start_direct(m, gp);
}

/* A new slice begins: a request meant for whoever ran before is void. */
INLINE void new_slice(M *m, P *p) {
    slice_begins(p);
    if (unlikely(p->turn == TURN_GLOBAL)) p->turn = TURN_OWN;
    if (unlikely(load_rlx(&m->attn) & ATTN_PREEMPT)) and_seq(&m->attn, ~(uint32_t)ATTN_PREEMPT);
}

INLINE bool runs_anywhere(const G *leaver, const G *next) { return load_rlx(&next->home) == NULL; }

INLINE G *pick_local(M *m) {
    P *p = m->p;
    return likely(obstacles(m, p) == 0) ? pick_own(m, p, NULL, runs_anywhere) : NULL;
}

INLINE bool own_empty(P *p) {
    return load_rlx(&p->runnext) == NULL && load_rlx(&p->head) == load_rlx(&p->tail);
}

/* Nothing is queued here: a batch of the global queue, as find.c would take it. */
static NOINLINE G *pick_global(M *m) {
    P *p = m->p;
    if (obstacles(m, p) != 0 || load_rlx(&p->timers.count) != 0 || !own_empty(p) || global_due(p))
        return NULL;
    lock(&sched.lock, RANK_SCHED);
    G *gp = global_get_locked(p, 0);
    unlock(&sched.lock);
    if (gp == NULL) return NULL;
    p->rounds++;
    if (unlikely(load_rlx(&gp->home) != NULL)) {
        m->nextg = gp;
        return NULL;
    }
    slice_begins(p);
    return gp;
}

/* gp leaves its stack: the context to continue at, of next; NULL: of g0. */
INLINE void *depart_for(M *m, G *gp, G *next) {
    gp->err = *m->errno_at;
    if (likely(next != NULL)) {
        if (unfurnished(m, next)) return by_way_of_g0(m, next);
        put_on(m, next);
        return next->sp;
    }
    m->curg = NULL;
    return m->g0sp;
}

/* The same for one out of the global queue. Another thread may have queued it after gp was noted as
 * leaving: in a trace it starts now, not at that moment. */
static NOINLINE void *depart_late(M *m, G *gp, G *next) {
    gp->err = *m->errno_at;
    if (unfurnished(m, next)) return by_way_of_g0(m, next);
    take_on(m, next);
    trace_start(m, next);
    return next->sp;
}

INLINE void *depart(M *m, G *gp) {
    G *next = pick_local(m);
    if (unlikely(next == NULL && global_count() != 0) && (next = pick_global(m)) != NULL)
        return depart_late(m, gp, next);
    return depart_for(m, gp, next);
}

NOINLINE M *switch_from_catch(M *m, G *gp, void *sp) {
    Handling mine = *m->handling;
    *m->handling = (Handling){0};
    m = switch_simply(m, gp, sp);
    *m->handling = mine;
    return m;
}

M *switch_to_g0(M *m, G *gp, commit_fn *commit, void *arg, Lock *l) {
    gp->err = *m->errno_at;
    m->commit = commit;
    m->commit_arg = arg;
    m->unlock = l;
    m->curg = NULL;
    return switch_from(m, gp, m->g0sp);
}

NORETURN void leave_for_good(M *m, commit_fn *commit, void *arg) {
    G *gp = m->curg;
    m->commit = commit;
    m->commit_arg = arg;
    void *next = m->g0sp;
    if (m->dying) m->curg = NULL;
    else next = depart(m, gp);
    switch_stacks(m, &gp->sp, gp, m->curg, next);
    __builtin_trap();
}

/* ---- park ----------------------------------------------------------------------------------- */

NOINLINE const char *unfinished(M *m) {
    if (m->world) return "with the world stopped";
    if (m->pins) return "while pinned";
    if (!in_blocking_call(m)) return NULL;
    if (m->curg->spare) exit_hook_alive(m->curg, m->curg->spare); /* or left by longjmp */
    return "inside a blocking call";
}

static NOINLINE void refuse_to_park(M *m) {
    const char *why = unfinished(m);
    if (why) fatal("blocking %s", why);
    fatal("parking in a nested section (depth %u)", m->locks);
}

/* Why a wait was ended, and not by its waker. */
static int why_ended(M *m) {
    int cause = use_cause(m);
    return cause ? cause : -ETIMEDOUT;
}

/* A plain thread: the lock, then the futex. */
static NOINLINE void park_thread(M *m, Lock *l, commit_fn *commit, void *arg, int reason,
                                 int64_t deadline, uint32_t ticket, int *ended) {
    G *gp = m->curg;
    gp->reason = (uint8_t)reason;
    int err = *m->errno_at;
    gp->param = NULL;
    if (deadline == NEVER) deadline = GORT_FOREVER;
    Ender *e = ended ? ender_of(gp) : NULL;
    if (e) {
        ender_arm(e, ticket, false);
        if (!ender_parked(e, ticket)) deadline = 0;
    }
    if (l) unlock(l);
    if (commit) commit(m, arg);
    store_rlx(&m->rest, m->locks);
    while (load_acq(&gp->futex) == 0) {
        if (os_futex_wait(&gp->futex, 0, deadline) != -ETIMEDOUT) continue;
        if (unlikely(sim_on)) sim_waited(deadline);
        if (ended && wait_claim(gp, ticket)) {
            gp->param = &gp->param;
            break;
        }
        deadline = GORT_FOREVER; /* somebody claimed it: the wake-up is on its way */
    }
    section_resumes(m);
    store_rlx(&gp->futex, 0);
    if (gp->param == &gp->param) *ended = why_ended(m);
    *m->errno_at = err;
}

/* gp, which runs, waits from here on: published by what m does once its stack is left. */
INLINE void begins_to_wait(M *m, G *gp, int reason) {
    if (unlikely(not_plain(m, gp) != 0)) refuse_to_park(m);
    gp->reason = (uint8_t)reason;
    gp->since = coarse_now();
    trace_block(m, gp, reason);
    store_rlx(&gp->status, G_WAITING);
}

void *park_begin(M *m, Lock *l, int reason) {
    G *gp = m->curg;
    if (unlikely(m->p == NULL)) { /* a plain thread, or misuse */
        if (!(gp->flags & GF_THREAD)) refuse_to_park(m);
        park_thread(m, l, NULL, NULL, reason, GORT_FOREVER, 0, NULL);
        return NULL;
    }
    begins_to_wait(m, gp, reason);
    m->unlock = l;
    return depart(m, gp);
}

void *park_commit_begin(M *m, commit_fn *commit, void *arg, int reason) {
    G *gp = m->curg;
    if (unlikely(gp->flags & GF_THREAD)) {
        park_thread(m, NULL, commit, arg, reason, GORT_FOREVER, 0, NULL);
        return NULL;
    }
    if (unlikely(m->p == NULL)) refuse_to_park(m);
    begins_to_wait(m, gp, reason);
    m->commit = commit;
    m->commit_arg = arg;
    return depart(m, gp);
}

/* The deadline of a wait: claims it and makes its G ready. */
static void deadline_passed(M *m, void *arg, uint32_t ticket) {
    G *gp = arg;
    if (!wait_claim(gp, ticket)) return;
    gp->param = &gp->param; /* the mark: woken by the deadline */
    ready(m, gp);
}

/* The commit arms the timer of a deadline, since it may end the wait at once, which is allowed only
 * after the stack was left. The caller's own commit runs after it, perhaps while the G already runs
 * elsewhere: a lock that it gives up last guards what it touches. */
typedef struct Deadline {
    Timer timer;
    Ender *ender; /* NULL: none */
    Lock *l;
    commit_fn *commit;
    void *arg;
} Deadline;

static void arm_deadline(M *m, void *arg) {
    /* on the parked stack: gone as soon as the deadline or a waker ends the wait */
    Deadline *d = arg;
    Lock *l = d->l;
    commit_fn *commit = d->commit;
    void *commit_arg = d->arg;
    Ender *e = d->ender;
    G *gp = d->timer.arg;
    uint32_t ticket = d->timer.seq;
    bool armed = d->timer.when < NEVER;
    /* Armed before the lock is given up: until then no waker can end the wait. The deadline itself
     * may fire on another thread at once, so d is not touched after this. e is kept where both may
     * end the wait. */
    if (armed && timer_add(m, &d->timer) != 0)
        deadline_passed(m, gp, ticket); /* the runtime has ended */
    if (e && !ender_parked(e, ticket)) deadline_passed(m, gp, ticket);
    if (e && armed) sub_seq(&e->kept, 1);
    if (l) unlock(l);
    if (commit) commit(m, commit_arg);
}

M *park_timed(M *m, Lock *l, commit_fn *commit, void *arg, int reason, int64_t deadline,
              uint32_t ticket, int *ended) {
    G *gp = m->curg;
    if (unlikely(gp->flags & GF_THREAD)) {
        park_thread(m, l, commit, arg, reason, deadline, ticket, ended);
        return m;
    }
    Deadline d = {.timer = {.when = deadline, .fn = deadline_passed, .arg = gp, .seq = ticket},
                  .ender = ender_of(gp),
                  .l = l,
                  .commit = commit,
                  .arg = arg};
    gp->param = NULL;
    if (unlikely(d.ender != NULL)) ender_arm(d.ender, ticket, deadline < NEVER);
    m = park_commit(m, arm_deadline, &d, reason);
    if (gp->param == &gp->param) {
        gp->param = NULL;
        *ended = why_ended(m);
    }
    /* the ender may have been faster than the timer */
    if (deadline < NEVER && (d.ender || !*ended)) timer_del(&d.timer);
    return m;
}

/* ---- ready ---------------------------------------------------------------------------------- */

/* gp is not new: it has run before, or its first turn is OVERDUE. */
static bool has_waited(const G *gp, int64_t now) {
    return gp->sp != NULL || now - gp->since > OVERDUE;
}

/* The ring overflows with new goroutines, which are spilled (globalq.c). A G that has waited keeps
 * its place in the ring; else each overflow would send it to the end of the line. Of those that
 * have never run only the first KEPT stay, so that there is room; the others are next in the global
 * queue. */
#define KEPT (RING / 4)
static void spill_new(P *p, GList *list) {
    GList fresh = {0}, kept = {0}, next = {0};
    int64_t now = coarse_now();
    G *first = list->head;
    while (first && !has_waited(first, now)) first = first->schedlink;
    if (likely(first == NULL)) {
        global_spill(list);
        return;
    }
    for (G *gp; (gp = glist_pop(list)) != NULL;) {
        bool stays = gp->sp != NULL || kept.count < KEPT;
        glist_push(!has_waited(gp, now) ? &fresh : stays ? &kept : &next, gp);
    }
    if (fresh.head) global_spill(&fresh);
    if (next.head) global_put_list_head(&next);
    runq_put_first(p, &kept);
}

static long overflow(void *arg) {
    G *gp = arg;
    P *p = getm()->p;
    GList list = {0};
    while (!runq_overflow(p, gp, &list))
        if (runq_push(p, gp)) return 0;
    bump(&p->n.overflows, 1);
    if (gp->sp == NULL) spill_new(p, &list);
    else global_put_list(&list);
    return 0;
}

NOINLINE void ready_overflow(M *m, G *gp) { call_with_room(m, overflow, gp); }

static NOINLINE void wake_thread(G *gp) {
    store_rel(&gp->futex, 1); /* pairs with park_thread; type-stable: the thread may go at once */
    os_futex_wake(&gp->futex, 1);
}

/* By a plain thread, or inside a blocking call. When the runtime has ended gp runs no further: the
 * end takes it back with all others, and waits for the sections that still hold it (init.c). */
static NOINLINE void ready_without_p(M *m, G *gp) {
    if (unlikely(!load_acq(&sched.running))) return;
    global_put(gp);
    wake_after_submit(m);
}

/* What both forms begin with. False: gp is a thread, or went to the global queue; it is done. */
INLINE bool becomes_runnable(M *m, G *gp) {
    if (unlikely(gp->flags & GF_THREAD)) {
        wake_thread(gp);
        return false;
    }
    check(load_rlx(&gp->status) == G_WAITING);
    trace_ready(m, gp);
    store_rlx(&gp->status, G_RUNNABLE);
    if (likely(m->p != NULL)) return true;
    ready_without_p(m, gp);
    return false;
}

NOINLINE void ready_rest(M *m, G *kicked) { slot_taken(m, m->p, kicked); }

void ready(M *m, G *gp) {
    if (becomes_runnable(m, gp)) slot_taken(m, m->p, runnext_swap(m->p, gp));
}

void ready_tail(M *m, G *gp) {
    if (!becomes_runnable(m, gp)) return;
    if (unlikely(!runq_push(m->p, gp))) ready_overflow(m, gp);
    wake_after_submit(m);
}

void ready_list(M *m, GList *list) {
    GList global = {0};
    bool any = false;
    G *gp;
    while ((gp = glist_pop(list)) != NULL) {
        if (gp->flags & GF_THREAD) {
            wake_thread(gp);
            continue;
        }
        check(load_rlx(&gp->status) == G_WAITING);
        trace_ready(m, gp);
        store_rlx(&gp->status, G_RUNNABLE);
        any = true;
        if (m->p == NULL || !runq_push(m->p, gp)) glist_push(&global, gp);
    }
    if (m->p == NULL && unlikely(!load_acq(&sched.running))) return; /* as in ready_without_p */
    if (global.head) global_put_list(&global);
    if (any) wake_after_submit(m);
}

/* ---- yield ---------------------------------------------------------------------------------- */

void unlock_and_wake(M *m, void *arg) {
    unlock(&sched.lock);
    wake_after_submit(m);
}

/* Queues gp, which runs, at the tail of the global queue and leaves. sched.lock stays held over
 * the switch: nobody can take gp before its stack is left. */
static void *queue_and_depart(M *m, G *gp, G *next) {
    store_rlx(&gp->status, G_RUNNABLE);
    gp->since = coarse_now();
    glist_push(&sched.global, gp);
    if (runq_alone()) m->unlock = &sched.lock;
    else m->commit = unlock_and_wake;
    return depart_for(m, gp, next);
}

/* The first of the global queue, with sched.lock held; NULL, and it is not held: it cannot be taken
 * here. */
INLINE G *lock_and_look(void) {
    lock(&sched.lock, RANK_SCHED);
    G *first = sched.global.head;
    if (likely(first != NULL && load_rlx(&first->home) == NULL)) return first;
    unlock(&sched.lock);
    return NULL;
}

/* The first of the ring, with sched.lock held, for a P that has no thieves. */
INLINE G *pop_and_lock(P *p, uint32_t head) {
    G *first = load_rlx(&p->ring[head % RING]);
    if (unlikely(!runq_alone() || load_rlx(&first->home) != NULL)) return NULL;
    store_rlx(&p->head, head + 1);
    lock(&sched.lock, RANK_SCHED);
    return first;
}

/* Those who have their turn in every 61st round at the latest: timers, what has spilled
 * (globalq.c), and threads under valgrind (find.c). */
static NOINLINE bool others_due(P *p) {
    return load_rlx(&p->timers.count) != 0 || load_rlx(&sched.spilled.count) != 0 ||
           valgrind_runs();
}

/* Queues gp at the tail of the global queue and gives who is next, with sched.lock held. NULL: that
 * is not plain to see, and nothing was done. */
INLINE G *change_places(P *p, G *gp) {
    G *next = load_rlx(&p->runnext);
    if (next != NULL) { /* inherits the slice */
        if (unlikely(!runq_alone() || load_rlx(&next->home) != NULL)) return NULL;
        store_rlx(&p->runnext, NULL);
        lock(&sched.lock, RANK_SCHED);
        glist_push(&sched.global, gp);
        return next;
    }
    bool due = global_due(p); /* the ring and the FIFO are not all there is */
    if ((unlikely(due) && others_due(p)) || global_count() == 0) return NULL;
    uint32_t head = load_rlx(&p->head);
    if (head == load_rlx(&p->tail)) {
        next = lock_and_look();
        if (unlikely(next == NULL)) return NULL;
        glist_exchange(&sched.global, gp);
        bump(&p->n.global_gets, 1);
    } else {
        next = due ? NULL : pop_and_lock(p, head);
        if (unlikely(next == NULL)) return NULL;
        glist_push(&sched.global, gp);
    }
    p->rounds++;
    slice_begins(p);
    return next;
}

/*
 * The plain cases of a yield: nothing is to be looked at, and either nothing is queued here and gp
 * changes places with the first of the global queue, under one hold of the lock; or this is the
 * only P. Nobody need be woken for it. In the first case the queue was not empty before, so by
 * wake.c whoever could be idle has been called or has yet to look, and it is not empty at any
 * moment that such a look could see; in the second there is nobody. NULL: it is not that plain.
 */
INLINE void *yield_straight(M *m, G *gp) {
    P *p = m->p;
    if (unlikely(p == NULL)) return NULL;
    /* not_plain, with 1 only where this is no child */
    uint32_t otherwise = (m->locks ^ process.same) | (load_rlx(&gp->status) ^ G_RUNNING);
    uintptr_t against = obstacles(m, p) | otherwise | load_rlx(&trace_on);
    if (unlikely(against != 0)) return NULL;
    G *next = change_places(p, gp);
    if (unlikely(next == NULL)) return NULL;
    m->unlock = &sched.lock;
    store_rlx(&gp->status, G_RUNNABLE);
    gp->since = coarse_now();
    gp->err = *m->errno_at;
    PROBE1(yield, gp->id);
    if (unfurnished(m, next)) return by_way_of_g0(m, next);
    take_on(m, next);
    PROBE1(start, next->id);
    return next->sp;
}

/* Nothing but the network is left: it has its turn in every 61st round. */
static bool poll_due(P *p) {
    if (load_rlx(&sched.poll_waiters) == 0) return false;
    p->rounds++;
    return global_due(p);
}

void *yield_begin(M *m) {
    G *gp = m->curg;
    if (unlikely(gp->flags & GF_THREAD)) {
        os_yield();
        return NULL;
    }
    if (unlikely(not_plain(m, gp) != 0 || m->p == NULL)) refuse_to_park(m);
    void *sp = yield_straight(m, gp);
    if (sp) return sp;
    P *p = m->p;
    G *next = pick_local(m);
    if (next == NULL && obstacles(m, p) == 0 && own_empty(p)) {
        if (global_count() == 0 && load_rlx(&p->timers.count) == 0 && !poll_due(p)) return NULL;
        lock(&sched.lock, RANK_SCHED);
        G *head = sched.global.head;
        if (head && load_rlx(&head->home) == NULL && !global_due(p)) {
            next = glist_pop(&sched.global);
            p->rounds++;
            bump(&p->n.global_gets, 1);
            new_slice(m, p);
        }
    } else {
        lock(&sched.lock, RANK_SCHED);
    }
    trace_yield(m, gp);
    return queue_and_depart(m, gp, next);
}

static NOINLINE void yield_slowly(void) {
    if (in_forked_child()) return;
    M *m = enter();
    m = yield(m);
    leave(m);
}

/* The section begins as in enter(): its look at attn is among the obstacles, and until that has
 * been found 0 nothing is written but the own count. */
EXPORT void gort_yield(void) {
    M *m = getm();
    if (unlikely(m == NULL)) return yield_slowly();
    m->locks++;
    fence_compiler(); /* as in enter() */
    G *gp = m->curg;
    void *next = yield_straight(m, gp);
    if (unlikely(next == NULL)) {
        m->locks--;
        return yield_slowly();
    }
    m = switch_from(m, gp, next);
    leave(m);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* GORT_DEBUG=migrate=1: a goroutine never comes back to the thread it left, where there is another,
 * so that wrong beliefs about thread-locals show. (P.look stays set: every switch passes by g0.) */
static NOINLINE bool migrate(M *m, G *gp) {
    lock(&sched.lock, RANK_SCHED);
    M *other = idle_m_get_locked();
    if (sched.idle_m_count < SPARES) maker_want_spare_locked();
    unlock(&sched.lock);
    if (other == NULL) return false;
    P *p = m_release_p(m);
    other->inherit = m->inherit; /* as in home_send */
    m->inherit = false;
    m_wake_with(other, p, gp);
    return true;
}

/* gp has a body: the thread runs it with that one's thread pointer. */
static void execute_with_body(M *m, G *gp) {
    if (!m->inherit) new_slice(m, m->p);
    m->inherit = false;
    take_on(m, gp);
    trace_start(m, gp);
    body_wear(m, gp);
    arch_switch(&m->g0sp, gp->sp);
    body_doff(m, gp);
    finish_switch(m);
}

/* gp has a home. False: it runs here, now. */
static NOINLINE bool execute_at_home(M *m, G *gp) {
    M *home = load_rlx(&gp->home);
    bool bodily = has_body(gp) && (home == &body_home || home == m);
    if (bodily) execute_with_body(m, gp);
    else if (home == m) return false;
    else if (gp->flags & GF_SOFT) return soft_send(m, gp);
    else home_send(m, gp);
    return true;
}

static void execute(M *m, G *gp) {
    if (unlikely(load_rlx(&gp->home) != NULL) && execute_at_home(m, gp)) return;
    if (unlikely(settings.migrate) && gp->m == m && load_rlx(&gp->home) == NULL && migrate(m, gp))
        return;
    if (!m->inherit) new_slice(m, m->p);
    m->inherit = false;
    take_on(m, gp);
    trace_start(m, gp);
    switch_stacks(m, &m->g0sp, NULL, gp, gp->sp);
    finish_switch(m);
}

/* On g0: the M ends, its runtime is over or it is not needed. */
static void m_leave_runtime(M *m) {
    soft_close(m);
    if (m->p == NULL) return;
    P *p = m_release_p(m);
    if (load_rlx(&sched.running) && m->epoch == load_rlx(&sched.epoch)) handoff_p(m, p);
}

void schedule_loop(M *m) {
    for (;;) {
        check(m->curg == NULL && m->locks == 1);
        if (unlikely(m->dying || (load_rlx(&m->attn) & ATTN_EXIT))) break;
        G *gp;
        if (unlikely(m->lockedg != NULL)) {
            gp = home_wait(m);
        } else if (m->p == NULL) {
            m_stop(m);
            continue;
        } else if ((gp = m->nextg) != NULL) { /* our own: nobody else writes it while we hold a P */
            m->nextg = NULL;
        } else {
            gp = find_runnable(m);
        }
        if (gp) execute(m, gp);
    }
    m_leave_runtime(m);
}
