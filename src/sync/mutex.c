/*
 * The mutex: Go's, with its two modes.
 *
 * Normal mode: the unlocker wakes the longest waiter but does not hand over. The woken waiter
 * competes with running goroutines, which may lock many times in a slice; if it loses, it goes back
 * to the *front* of the queue. Starvation mode: a waiter that has waited 1 ms switches to it. The
 * unlocker hands ownership to the head of the queue and yields its slice to it; new arrivals queue
 * up without competing. A new owner switches back if it is the last or has waited less than 1 ms.
 *
 * The word:
 *
 *   LOCKED     it has an owner
 *   WOKEN      a waiter is awake and will compete (or a newcomer spins): unlock need not wake
 *              another. That goroutine clears it, in the CAS by which it gets the lock, goes (back)
 *              to sleep, or gives up.
 *   STARVING   starvation mode; implies LOCKED and PARKED
 *   PARKED     a sleeper stands in the table (sema.c) under this address
 *   SLOW       above them, a count: see below
 *
 * PARKED changes only under the bucket's lock; so does the release of a mutex with sleepers to
 * wake. Hence no thread touches a mutex after the CAS that frees it: the next owner may free it. No
 * wake-up is lost: LOCKED is cleared while PARKED is set only if WOKEN is or becomes set; the
 * holder of WOKEN ends with LOCKED set, by itself or another, whose unlock sees PARKED.
 *
 * The uncontended lock sets one bit without a load before it, which would fetch the line twice. The
 * uncontended unlock has no locked instruction, which saves a third of the whole:
 *
 *   owner, unlock                          contender, before it sleeps: make_slow()
 *   U1  m->unlocking = mu                  S1  set SLOW (bucket locked, like all that follows)
 *       (compiler barrier)                 S2  membarrier: every CPU that runs a thread of ours
 *   U2  state == LOCKED, and nothing else?     passes a full barrier
 *   U3  state = 0                          S3  wait until no M's `unlocking` is this mutex
 *   U4  m->unlocking = NULL                S4  SLOW still there? else from the beginning
 *
 * U3 is a plain store and would wipe out a PARKED set after U2, the sleeper's only trace. So PARKED
 * is set only where SLOW has stood since before S2. Each U2 falls before or after S2 on its CPU.
 * After: it sees SLOW, and the unlock is done by CAS. Before: its U1 is visible at S3, which waits
 * for U4. U3 is then visible at S4: SLOW is gone, and either the mutex is free or another owner has
 * it and S1 comes again. Only S1 sets SLOW, so the SLOW seen at S4 is the one set at S1.
 *
 * No thread stays between U1 and U4 for long: the handler of preempt.c lets it go on. SLOW counts:
 * each unlock by CAS that finds only LOCKED besides takes one off. So a mutex is cheap again after
 * SLOW_UNLOCKS unlocks, and the barrier's microseconds are spread over as many. Without membarrier,
 * and on other processors, every unlock is a CAS.
 *
 * Orders: acquire by the instruction that sets LOCKED, release by the store or CAS that clears it;
 * a hand-over is ordered by ready() and park().
 */
#include "sync/mutex.h"
#include "sched/retake.h"
#include "sched/sim.h"

enum { LOCKED = MUTEX_LOCKED, WOKEN = 2, STARVING = 4, PARKED = 8 };

#ifdef __x86_64__
#define PLAIN_UNLOCK 1
#else
#define PLAIN_UNLOCK 0
#endif
#ifndef SLOW_UNLOCKS
#ifdef GORT_CHECKED
#define SLOW_UNLOCKS 3u /* to and fro */
#else
#define SLOW_UNLOCKS 0xffffu
#endif
#endif
#define SLOW_ONE 0x100u
#define SLOW (0xffffu * SLOW_ONE)

static bool slow_first;  /* atomic: a waiter makes it slow before it sleeps */
static bool plain_works; /* atomic: unlock may be plain; not before all see slow_first */

/* A plain thread that has not seen slow_first may be going to sleep. It does so under the lock of a
 * bucket: take each of them once. */
void mutex_start(void) {
    if (!PLAIN_UNLOCK || !retake_works || load_rlx(&plain_works)) return;
    store_rlx(&slow_first, true);
    for (int i = 0; i < SEMA_BUCKETS; i++) {
        lock(&sema_table[i].lock, RANK_PRIM);
        unlock(&sema_table[i].lock);
    }
    store_rel(&plain_works, true);
}

/* S1 to S3, bucket locked. False: the barrier is not (or no longer) to be had. */
static bool make_slow(gort_mutex *mu) {
    or_seq(&mu->state_, SLOW_UNLOCKS * SLOW_ONE);
    if (os_membarrier() != 0) {
        and_seq(&mu->state_, ~SLOW); /* SLOW promises what S2 has not done */
        return false;
    }
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        for (int i = 0; load_acq(&m->unlocking) == mu; i++)
            if (i < 100) arch_pause();
            else os_yield();
    return true;
}

/* U1 to U4. False: not done, since there is more than LOCKED, or no M. */
INLINE bool unlock_plainly(gort_mutex *mu, M *m) {
    if (!PLAIN_UNLOCK || load_rlx(&mu->state_) != LOCKED) return false;
    if (unlikely(m == NULL || m->unlocking != NULL || !load_rlx(&plain_works))) return false;
    store_rlx(&m->unlocking, mu);
    fence_compiler(); /* S2 is the fence */
    bool alone = load_rlx(&mu->state_) == LOCKED;
    if (likely(alone)) store_rel(&mu->state_, 0);
    store_rel(&m->unlocking, NULL);
    return alone;
}

#define STARVE_AFTER (1 * GORT_MS)
#define SPINS 4 /* rounds of spinning, as in Go */
#define SPIN_PAUSES 30

/* What one call to lock knows. */
typedef struct LockTry {
    gort_mutex *mu;
    int64_t deadline;
    int reason;
    int64_t since; /* when it first went to sleep; 0: not yet */
    bool awoke;    /* WOKEN stands for it */
    bool starving; /* has waited too long */
    int spins;
} LockTry;

/* In a section. Spinning helps only if the owner runs on another CPU and no G waits to run here. */
static bool can_spin(M *m, const LockTry *a) {
    if (a->spins >= SPINS) return false;
    if (m->plain) return true;
    uint32_t procs = load_rlx(&sched.procs);
    if (procs < 2 || load_rlx(&sched.npidle) + load_rlx(&sched.spinning) + 1 >= procs) return false;
    return runs_alone(m);
}

/* One round; WOKEN tells the unlocker that it need not wake a sleeper. */
static void mutex_spin(LockTry *a, uint32_t old) {
    a->spins++;
    if (!a->awoke && (old & (WOKEN | PARKED)) == PARKED)
        a->awoke = cas_acq(&a->mu->state_, &old, old | WOKEN);
    for (int i = 0; i < SPIN_PAUSES; i++) arch_pause();
}

/* The state, without WOKEN if that stands for this attempt. */
INLINE uint32_t settled(const LockTry *a, uint32_t state) {
    return a->awoke ? state & ~(uint32_t)WOKEN : state;
}

/* Takes the mutex while it is free. */
static bool mutex_take(LockTry *a, uint32_t *old) {
    *old = load_rlx(&a->mu->state_);
    while (!(*old & LOCKED))
        if (cas_acq(&a->mu->state_, old, settled(a, *old | LOCKED))) return true;
    return false;
}

/* The deadline has passed. True: given up. False: it got the mutex at this very moment. */
static bool mutex_give_up(LockTry *a) {
    uint32_t old;
    for (;;) {
        if (mutex_take(a, &old)) return false;
        if (!a->awoke || cas_acq(&a->mu->state_, &old, settled(a, old))) return true;
    }
}

/* Reading the clock costs as much as a switch. The monitor's reading is at most 2 ms late while a
 * goroutine waits for a P: starvation begins that much later, or once too early. */
static int64_t clock_now(void) {
    return likely(load_rlx(&sched.running)) ? coarse_now() : os_now();
}

/* The kernel has taken membarrier away (a filter that came late): no waiter can sleep here. */
static M *look_again_later(M *m, LockTry *a) {
    /* first: after the yield it may never run again */
    if (a->awoke) and_seq(&a->mu->state_, ~(uint32_t)WOKEN);
    a->awoke = false;
    if (may_yield(m)) return yield(m);
    os_nap(50 * GORT_US);
    return m;
}

/* A woken sleeper owns the mutex, or has WOKEN and competes once more. What it gets it unlocks. */
static void mutex_abandon(Sleeper *s) {
    gort_mutex *mu = s->object;
    LockTry a = {.mu = mu, .awoke = true};
    if (sema_withdraw(s, &mu->state_, PARKED | STARVING)) return;
    if (s->taken && (s->granted || !mutex_give_up(&a))) gort_mutex_unlock(mu);
}

/* Sleeps until woken, handed the mutex (*owner) or ended (*ended). No sleep if it is free. */
static M *sleep_once(M *m, LockTry *a, bool *owner, int *ended) {
    gort_mutex *mu = a->mu;
    SemaBucket *b = sema_bucket(mu);
    Sleeper s;
    *owner = false;
    *ended = 0;
    lock(&b->lock, RANK_PRIM);
    for (;;) {
        uint32_t old = load_rlx(&mu->state_);
        if (!(old & LOCKED)) {
            unlock(&b->lock);
            return m;
        }
        if (!(old & SLOW) && load_rlx(&slow_first)) {
            if (make_slow(mu)) continue;
            unlock(&b->lock);
            return look_again_later(m, a);
        }
        if (cas_acq(&mu->state_, &old, settled(a, old | PARKED | (a->starving ? STARVING : 0))))
            break;
    }
    sleeper_init(&s, m, a->deadline, mu, mutex_abandon);
    sema_push(b, &s, mu, a->since != 0);
    if (a->since == 0) a->since = clock_now();
    a->awoke = false;
    m = sleeper_park(m, &s, &b->lock, a->reason, a->deadline, ended);
    if (*ended) {
        sema_withdraw(&s, &mu->state_, PARKED | STARVING);
        return m;
    }
    *owner = s.granted;
    a->awoke = !s.granted; /* without a hand-over the waker has set WOKEN for it */
    return m;
}

M *mutex_lock_in_section(M *m, gort_mutex *mu, int64_t deadline, int reason, int *r) {
    LockTry a = {.mu = mu, .deadline = deadline, .reason = reason};
    bool owner = false;
    int ended = 0;
    uint32_t old;
    *r = 0;
    while (!mutex_take(&a, &old)) {
        if (ended == 0) ended = wait_over(m, deadline);
        if (ended) {
            *r = mutex_give_up(&a) ? ended : 0;
            break;
        }
        if (!(old & STARVING) && a.since == 0 && can_spin(m, &a)) {
            mutex_spin(&a, old);
            continue;
        }
        if (a.since != 0 && !a.starving) a.starving = clock_now() - a.since > STARVE_AFTER;
        m = sleep_once(m, &a, &owner, &ended);
        if (owner) {
            if (clock_now() - a.since < STARVE_AFTER) and_seq(&mu->state_, ~(uint32_t)STARVING);
            break;
        }
    }
    return m;
}

/* The mutex is not free, or a simulation sees each call. 0, -ETIMEDOUT. */
static NOINLINE int mutex_lock_slow(gort_mutex *mu, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    int r = 0;
    SIM_POINT();
    if (!sim_on || !mutex_seize(mu))
        leave(mutex_lock_in_section(enter(), mu, deadline, WAIT_MUTEX, &r));
    if (r == 0) tsan_acquire(mu);
    return r;
}

/* The plain case needs no frame, so that the compiler saves nothing. The other is not a tail call:
 * backtraces show the public one. */
INLINE int mutex_lock(gort_mutex *mu, int64_t deadline) {
    if (unlikely(sim_on) || unlikely(!mutex_seize(mu))) {
        int r = mutex_lock_slow(mu, deadline);
        fence_compiler();
        return r;
    }
    tsan_acquire(mu);
    return 0;
}

INLINE bool wakes_nobody(uint32_t state) {
    return !(state & PARKED) || (state & (WOKEN | STARVING)) == WOKEN;
}

/* Bucket locked. Unlocks a mutex that may have sleepers by one CAS. The one to ready, or NULL. */
static Sleeper *release_locked(gort_mutex *mu, SemaBucket *b) {
    bool more;
    uint32_t old = load_rlx(&mu->state_), next;
    while (wakes_nobody(old)) /* the sleepers have expired, or one is awake */
        if (cas_rel(&mu->state_, &old, old & ~(uint32_t)LOCKED)) return NULL;
    Sleeper *s = sema_pop(b, mu, &more);
    if (s != NULL) s->granted = (old & STARVING) != 0;
    do {
        next = old & ~(uint32_t)(more ? 0 : PARKED | STARVING);
        if (s == NULL) next &= ~(uint32_t)LOCKED;
        else if (!s->granted) next = (next & ~(uint32_t)LOCKED) | WOKEN;
    } while (!cas_acq_rel(&mu->state_, &old, next));
    return s;
}

/* The state without LOCKED, and one step nearer to plain unlocks where no other bit is set. */
INLINE uint32_t freed(uint32_t state) {
    bool alone = (state & SLOW) != 0 && (state & (PARKED | WOKEN | STARVING)) == 0;
    return (state & ~(uint32_t)LOCKED) - (alone ? SLOW_ONE : 0);
}

static NOINLINE void mutex_unlock_contended(gort_mutex *mu) {
    uint32_t old = load_rlx(&mu->state_);
    while (wakes_nobody(old)) {
        if (!(old & LOCKED)) fatal("unlock of unlocked mutex");
        if (cas_rel(&mu->state_, &old, freed(old))) {
            poll_attention();
            return;
        }
    }
    if (in_forked_child()) return;
    if (!(old & LOCKED)) fatal("unlock of unlocked mutex");
    SemaBucket *b = sema_bucket(mu);
    M *m = enter();
    lock(&b->lock, RANK_PRIM);
    Sleeper *s = release_locked(mu, b);
    G *gp = s != NULL ? s->gp : NULL;
    bool handed = s != NULL && s->granted;
    unlock(&b->lock);
    if (gp != NULL) {
        if (handed && may_yield(m)) m = ready_and_yield(m, gp);
        else ready(m, gp);
    }
    leave(m);
}

EXPORT void gort_mutex_lock(gort_mutex *mu) { mutex_lock(mu, GORT_FOREVER); }

EXPORT int gort_mutex_lock_until(gort_mutex *mu, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    return mutex_lock(mu, call_limit(deadline));
}

EXPORT int gort_mutex_try_lock(gort_mutex *mu) {
    if (in_forked_child()) return -ENOTCONN;
    LockTry a = {.mu = mu};
    uint32_t old;
    if (!mutex_take(&a, &old)) return -EBUSY;
    tsan_acquire(mu);
    return 0;
}

EXPORT void gort_mutex_unlock(gort_mutex *mu) {
    tsan_release(mu);
    M *m = getm();
    if (unlikely(!unlock_plainly(mu, m))) mutex_unlock_contended(mu);
    else if (unlikely(load_rlx(&m->attn) != 0)) poll_attention();
}
