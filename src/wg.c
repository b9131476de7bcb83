/*
 * Wait groups and once.
 *
 * A wait group is one word:
 *
 *   63       32 31          1 0
 *   | counter  | generation  |P|      P: somebody sleeps in the table under this address
 *
 * The add that brings the counter to 0 ends the generation: in one CAS the counter is 0, the
 * generation is the next, P is clear. After it the wait group is not touched any more, only its
 * address is used to find the sleepers; so a waiter that sees 0 may free the wait group while the
 * last gort_wg_done() is still on its way to the table. What that one then wakes may not be meant
 * (another wait group may live at the address by then): a woken waiter whose generation has not
 * ended goes back to sleep. One whose generation has ended returns, also if the counter has been
 * raised again meanwhile, as in Go.
 *
 * No wake-up is lost: P is set under the bucket's lock together with queueing, by a CAS that
 * fails if the counter is 0; the last done sees P and takes the lock.
 *
 * Orders: done is a release, wait an acquire on the same word; adds in between keep the release
 * sequence going, being read-modify-writes.
 *
 * Once is a flag and a mutex: who finds the flag down takes the mutex and calls; everybody returns
 * only after the call has ended. It counts as done when the function ends by gort_exit() too.
 */
#include "exit_hook.h"
#include "mutex.h"

#define ONE ((uint64_t)1 << 32)
#define GENERATION ((uint64_t)2)
#define P_BIT ((uint64_t)1)

INLINE int32_t counter_of(uint64_t state) { return (int32_t)(state >> 32); }
INLINE uint32_t generation_of(uint64_t state) { return (uint32_t)state & ~(uint32_t)P_BIT; }

/* The state with the counter at 0: the next generation. */
INLINE uint64_t generation_end(uint64_t state) {
    return (uint32_t)((uint32_t)state + GENERATION) & ~P_BIT;
}

/* Wakes whoever sleeps under this address. The wait group itself may be gone. */
static NOINLINE void wake_all(gort_wg *wg) {
    if (in_forked_child()) return;
    GList list = {0};
    Bucket *b = sema_bucket(wg);
    M *m = enter();
    lock(&b->lock, RANK_PRIM);
    sema_pop_all(b, wg, &list);
    unlock(&b->lock);
    if (list.count) ready_list(m, &list);
    leave(m);
}

EXPORT void gort_wg_add(gort_wg *wg, int n) {
    if (n == 0) return;
    if (n < 0) tsan_release(wg);
    uint64_t old = load_rlx(&wg->state_), next;
    do {
        int64_t counter = (int64_t)counter_of(old) + n;
        if (counter < 0 || counter > INT32_MAX) {
            if (in_forked_child()) return;
            fatal(counter < 0 ? "negative wait group counter" : "wait group counter overflows");
        }
        next = counter == 0 ? generation_end(old) : (uint64_t)counter << 32 | (uint32_t)old;
    } while (!cas_acq_rel(&wg->state_, &old, next));
    if (counter_of(next) == 0 && (old & P_BIT)) wake_all(wg);
    else poll_attention();
}

EXPORT void gort_wg_done(gort_wg *wg) { gort_wg_add(wg, -1); }

/* Marks wg as slept on unless the generation has ended. */
static bool mark(gort_wg *wg, uint32_t generation) {
    uint64_t old = load_acq(&wg->state_);
    do {
        if (generation_of(old) != generation || counter_of(old) == 0) return false;
    } while (!cas_acq_rel(&wg->state_, &old, old | P_BIT));
    return true;
}

/* The deadline has passed, s is still queued: takes it off, and the mark with the last. False: the
 * generation has ended at this moment. */
static bool expire(gort_wg *wg, Bucket *b, Sleeper *s, uint32_t generation) {
    lock(&b->lock, RANK_PRIM);
    if (s->queued) sema_remove(b, s);
    uint64_t old = load_acq(&wg->state_);
    while (generation_of(old) == generation && counter_of(old) != 0) {
        uint64_t next = sema_has(b, wg) ? old : old & ~P_BIT;
        if (!cas_acq_rel(&wg->state_, &old, next)) continue;
        unlock(&b->lock);
        return true;
    }
    unlock(&b->lock);
    return false;
}

static NOINLINE int wait_slow(gort_wg *wg, uint32_t generation, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    if (deadline != GORT_FOREVER && os_now() >= deadline) return -ETIMEDOUT;
    Bucket *b = sema_bucket(wg);
    bool timed_out = false;
    Sleeper s;
    M *m = enter();
    for (;;) {
        sleeper_init(&s, m, deadline);
        lock(&b->lock, RANK_PRIM);
        if (!mark(wg, generation)) {
            unlock(&b->lock);
            break;
        }
        sema_push(b, &s, wg, false);
        m = sleeper_park(m, &s, &b->lock, WAIT_WG, deadline, &timed_out);
        if (timed_out) {
            timed_out = expire(wg, b, &s, generation);
            break;
        }
    }
    leave(m);
    return timed_out ? -ETIMEDOUT : 0;
}

EXPORT int gort_wg_wait_until(gort_wg *wg, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    uint64_t state = load_acq(&wg->state_);
    int r = 0;
    if (counter_of(state) != 0) r = wait_slow(wg, generation_of(state), deadline);
    if (r == 0) tsan_acquire(wg);
    return r;
}

EXPORT void gort_wg_wait(gort_wg *wg) {
    uint64_t state = load_acq(&wg->state_);
    if (counter_of(state) != 0) wait_slow(wg, generation_of(state), GORT_FOREVER);
    tsan_acquire(wg);
}

/* ---- gort_wg_go ----------------------------------------------------------------------------- */

typedef struct Member {
    gort_wg *wg;
    gort_fn *fn;
    void *arg;
} Member;

static void member_ends(void *arg) { gort_wg_done(arg); }

/* A goroutine's function; arg is its own copy. */
static void member_run(void *arg) {
    Member *me = arg;
    ExitHook hook = {.fn = member_ends, .arg = me->wg};
    exit_hook_push(current(), &hook);
    me->fn(me->arg);
    exit_hook_pop(current(), &hook);
    gort_wg_done(me->wg);
}

EXPORT int gort_wg_go(gort_wg *wg, gort_fn *fn, void *arg) {
    if (!runtime_running()) return -ENOTCONN;
    if (fn == NULL) return -EINVAL;
    Member me = {wg, fn, arg};
    gort_wg_add(wg, 1);
    M *m = enter();
    int r = go_start(m, NULL, member_run, NULL, &me, sizeof me,
                     (uintptr_t)__builtin_return_address(0));
    leave(m);
    if (r < 0) gort_wg_done(wg);
    return r;
}

/* ---- once ----------------------------------------------------------------------------------- */

static void once_done(void *arg) {
    gort_once *once = arg;
    tsan_release(once);
    store_rel(&once->done_, 1); /* pairs with the acquire of the fast path */
    gort_mutex_unlock(&once->m_);
}

static NOINLINE void once_slow(gort_once *once, void (*fn)(void *), void *arg) {
    if (in_forked_child()) return;
    ExitHook hook = {.fn = once_done, .arg = once};
    gort_mutex_lock(&once->m_);
    if (load_rlx(&once->done_)) {
        gort_mutex_unlock(&once->m_);
        return;
    }
    exit_hook_push(current(), &hook);
    fn(arg);
    exit_hook_pop(current(), &hook);
    once_done(once);
}

EXPORT void gort_once_do(gort_once *once, void (*fn)(void *), void *arg) {
    if (unlikely(!load_acq(&once->done_))) once_slow(once, fn, arg);
    else poll_attention();
    tsan_acquire(once);
}
