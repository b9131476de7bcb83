/*
 * Wait groups and once.
 *
 * A wait group is a word and a list of waiters:
 *
 *   63       32 31          1 0
 *   | counter  | generation  |P|      P: the list is not empty
 *
 * The list hangs in the wait group itself, under the lock of its address's bucket (sema.c):
 * fork-join programs wait for a hundred thousand wait groups at once, too many for a table of keys.
 *
 * The add that brings the counter to 0 ends the generation in one CAS: counter 0, next generation,
 * P clear. After that CAS the wait group is not touched, since a waiter that sees 0 may free it. So
 * if P is set, that add first takes the lock and the list, then does its CAS, and wakes the list;
 * if the CAS finds the counter raised meanwhile, the list goes back. A waiter whose generation has
 * ended returns even if the counter has been raised again, as in Go.
 *
 * No wake-up is lost: P is set under the lock together with queueing, by a CAS that fails if the
 * counter is 0; the last done sees P and takes the lock. Orders: done is a release, wait an acquire
 * on the same word; adds in between, being read-modify-writes, continue the release sequence.
 *
 * Members of a wait group, gort_wg_go's, count as ended however they end: by a return, by
 * gort_exit(), or with their runtime, even if they never ran.
 *
 * Once is a flag and a mutex: a caller that finds the flag down takes the mutex and calls; every
 * caller returns only after the call has ended. It is done also when the function ends by
 * gort_exit() or by a C++ exception: as in Go, where a panic does, and unlike std::call_once. If
 * the runtime ends under it, it is not done, and the next caller calls the function again.
 */
#include "base/hint.h"
#include "sched/goexit.h"
#include "sync/mutex.h"

#define GENERATION ((uint64_t)2)
#define P_BIT ((uint64_t)1)

INLINE int32_t counter_of(uint64_t state) { return (int32_t)(state >> 32); }
INLINE uint32_t generation_of(uint64_t state) { return (uint32_t)state & ~(uint32_t)P_BIT; }

static uint64_t added(uint64_t old, int n) {
    int64_t counter = (int64_t)counter_of(old) + n;
    if (unlikely(counter < 0 || counter > INT32_MAX))
        fatal(counter < 0 ? "negative wait group counter" : "wait group counter overflows");
    if (counter == 0) return (uint32_t)((uint32_t)old + GENERATION) & ~P_BIT;
    return (uint64_t)counter << 32 | (uint32_t)old;
}

/* The counter comes to 0 while P is set: see the essay. */
static NOINLINE void end_generation(gort_wg *wg, int n) {
    GList list = {0};
    SemaBucket *b = sema_bucket(wg);
    M *m = enter();
    lock(&b->lock, RANK_PRIM);
    Sleeper *first = wg->waiters_;
    uint64_t old = load_rlx(&wg->state_), next;
    do {
        next = added(old, n);
        wg->waiters_ = counter_of(next) == 0 ? NULL : first; /* not 0: raised meanwhile */
    } while (!cas_acq_rel(&wg->state_, &old, next));
    if (counter_of(next) == 0) sleepers_take(first, &list);
    unlock(&b->lock);
    sleepers_ready(m, &list);
    leave(m);
}

EXPORT void gort_wg_add(gort_wg *wg, int n) {
    if (in_forked_child()) return;
    if (n == 0) return;
    if (n < 0) tsan_release(wg);
    uint64_t old = load_rlx(&wg->state_), next;
    do {
        next = added(old, n);
        if (counter_of(next) == 0 && (old & P_BIT)) {
            end_generation(wg, n);
            return;
        }
    } while (!cas_acq_rel(&wg->state_, &old, next));
    poll_attention();
}

/* The usual end of a member: others are left, so neither the generation ends nor does anybody wake.
 * False: not that plain. */
INLINE bool done_plainly(gort_wg *wg) {
    const uint64_t one = (uint64_t)1 << 32;
    uint64_t old = load_rlx(&wg->state_);
    do {
        if (unlikely((int64_t)old < (int64_t)(2 * one))) return false;
    } while (!cas_acq_rel(&wg->state_, &old, old - one));
    return true;
}

EXPORT void gort_wg_done(gort_wg *wg) {
    tsan_release(wg);
    if (unlikely(!process.same) || unlikely(!done_plainly(wg))) gort_wg_add(wg, -1);
    else poll_attention();
}

/* Sets P unless the generation has ended. */
static bool wg_mark(gort_wg *wg, uint32_t generation) {
    uint64_t old = load_acq(&wg->state_);
    do {
        if (generation_of(old) != generation || counter_of(old) == 0) return false;
    } while (!cas_acq_rel(&wg->state_, &old, old | P_BIT));
    return true;
}

/* Bucket locked. Order does not matter: all are woken together. */
static void wg_enlist(gort_wg *wg, Sleeper *s) {
    Sleeper *first = wg->waiters_;
    s->prev = NULL;
    s->next = first;
    if (first) first->prev = s;
    wg->waiters_ = s;
    s->queued = true;
}

/* Takes s off, and clears P after the last. False: the generation has just ended. */
static bool wg_expire(gort_wg *wg, SemaBucket *b, Sleeper *s) {
    lock(&b->lock, RANK_PRIM);
    bool queued = s->queued; /* else the generation has ended, and wg may be gone */
    if (queued) {
        if (s->prev) s->prev->next = s->next;
        else wg->waiters_ = s->next;
        if (s->next) s->next->prev = s->prev;
        if (wg->waiters_ == NULL) __atomic_fetch_and(&wg->state_, ~P_BIT, __ATOMIC_ACQ_REL);
    }
    unlock(&b->lock);
    return queued;
}

static void wg_abandon(Sleeper *s) { wg_expire(s->object, sema_bucket(s->object), s); }

static NOINLINE int wait_slow(gort_wg *wg, uint32_t generation, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    SemaBucket *b = sema_bucket(wg);
    Sleeper s;
    M *m = enter();
    int ended = wait_over(m, deadline);
    if (ended) {
        leave(m);
        return ended;
    }
    lock(&b->lock, RANK_PRIM);
    if (!wg_mark(wg, generation)) {
        unlock(&b->lock);
    } else {
        sleeper_init(&s, m, deadline, wg, wg_abandon);
        wg_enlist(wg, &s);
        m = sleeper_park(m, &s, &b->lock, WAIT_WG, deadline, &ended);
        if (ended && !wg_expire(wg, b, &s)) ended = 0;
    }
    leave(m);
    return ended;
}

EXPORT int gort_wg_wait_until(gort_wg *wg, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    uint64_t state = load_acq(&wg->state_);
    int r = 0;
    if (counter_of(state) != 0) r = wait_slow(wg, generation_of(state), call_limit(deadline));
    if (r == 0) tsan_acquire(wg);
    return r;
}

EXPORT void gort_wg_wait(gort_wg *wg) {
    uint64_t state = load_acq(&wg->state_);
    if (counter_of(state) != 0) wait_slow(wg, generation_of(state), GORT_FOREVER);
    fence_compiler(); /* no tail call: backtraces show this one */
    tsan_acquire(wg);
}

/* ---- gort_wg_go ----------------------------------------------------------------------------- */

typedef struct WgMember {
    gort_wg *wg;
    gort_fn *fn;
    void *arg;
} WgMember;

/* In one section, so that the end of a runtime finds a whole member or none. */
static void wg_member_ends(ExitHook *h) {
    WgMember *me = h->object;
    gort_wg *wg = me->wg;
    M *m = enter();
    exit_hook_pop(self(m), h);
    me->wg = NULL;
    gort_wg_done(wg);
    leave(m);
}

void wg_member_abandon(void *arg) {
    WgMember *me = arg;
    if (me->wg) gort_wg_done(me->wg);
}

void wg_member_run(void *arg) {
    WgMember *me = arg;
    ExitHook hook = {.fn = wg_member_ends, .object = me};
    M *m = enter();
    exit_hook_push(self(m), &hook);
    leave(m);
    me->fn(me->arg);
    values_over(current_g());
    wg_member_ends(&hook);
}

EXPORT int gort_wg_go(gort_wg *wg, gort_fn *fn, void *arg) {
    if (fn == NULL) return -EINVAL;
    if (!runtime_running()) return hint_no_runtime("gort_wg_go");
    WgMember me = {wg, fn, arg};
    M *m = enter(); /* in one section: counted and started, or neither */
    gort_wg_add(wg, 1);
    int r = go_start(m, NULL, wg_member_run, NULL, &me, sizeof me,
                     (uintptr_t)__builtin_return_address(0));
    if (r < 0) gort_wg_done(wg);
    leave(m);
    return r;
}

/* ---- once ----------------------------------------------------------------------------------- */

static void once_done(ExitHook *h) {
    gort_once *once = h->object;
    tsan_release(once);
    M *m = enter();
    exit_hook_pop(self(m), h);
    store_rel(&once->done_, 1); /* pairs with the acquire of the fast path */
    gort_mutex_unlock(&once->m_);
    leave(m);
}

/* The function will never end: the next caller runs it. */
static void once_undone(ExitHook *h) { gort_mutex_unlock(&((gort_once *)h->object)->m_); }

typedef struct Init {
    void (*fn)(void *);
    void *arg;
} Init;
static long once_invoke(void *arg) {
    Init *init = arg;
    init->fn(init->arg);
    return 0;
}

static NOINLINE void once_do_slow(gort_once *once, void (*fn)(void *), void *arg) {
    if (in_forked_child()) return;
    if (fn == NULL) fatal("gort_once_do without a function");
    ExitHook hook = {.fn = once_done, .abandon = once_undone, .object = once};
    Init init = {fn, arg};
    M *m = enter();
    if (exit_hook_has(self(m), once_done, once)) fatal("gort_once_do inside its own function");
    m = mutex_await_in_section(m, &once->m_);
    tsan_acquire(&once->m_);
    bool mine = !load_rlx(&once->done_);
    if (mine) exit_hook_push(self(m), &hook);
    else gort_mutex_unlock(&once->m_);
    leave(m);
    if (!mine) return;
    call_guarded(once_invoke, &init);
    once_done(&hook);
}

EXPORT void gort_once_do(gort_once *once, void (*fn)(void *), void *arg) {
    if (unlikely(!load_acq(&once->done_))) once_do_slow(once, fn, arg);
    else poll_attention();
    tsan_acquire(once);
}
