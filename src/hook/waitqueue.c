/*
 * Goroutines that wait for a thread-level lock: queues by address.
 *
 * The locks stay libc's own, so that plain threads and goroutines exclude each other. A goroutine
 * only ever tries. If that fails it queues itself here, tries once more, and parks. A thread that
 * releases by a hooked function looks at the queue after libc has released: Dekker, see released().
 *
 * A WaitEntry lives on the waiter's stack. It is hit at most once: before it has parked, and
 * waitq_wait finds the hit, or by a claim of the park. A waker passes over an entry whose deadline
 * was faster. Goroutines that still wait when their runtime ends never run again, and their stacks
 * are gone: the first that locks a bucket in another runtime empties it.
 *
 * Every release asks whether somebody waits (waitq_has), so the answer is two words of the bucket:
 * how many, and a bit for each address. The bits of those that have left stay until a walk for
 * another address finds nothing (waitq_find).
 *
 * This is not the core's table of sleepers (sync/sema.c): with a goroutine that waits for a
 * gort_mutex in the bucket, lock and unlock cost 650 ns instead of 9. Nor is there much to share:
 * here a waker hits entries that have not parked or that nap, by bits.
 */
#include "hook/hook_internal.h"

WaitBucket waitq_table[WAITQ_BUCKETS];

static void waitq_lock(WaitBucket *b) {
    core->lock(&b->lock);
    uint32_t life = core->life();
    if (likely(b->life == life)) return;
    b->life = life;
    b->first = b->last = NULL;
    store_rlx(&b->addrs, 0);
    store_rlx(&b->count, 0);
}

static void waitq_push(WaitBucket *b, WaitEntry *w) {
    w->next = NULL;
    w->prev = b->last;
    *(b->last ? &b->last->next : &b->first) = w;
    b->last = w;
    w->queued = true;
    store_rlx(&b->addrs, b->addrs | waitq_bit(w->addr));
    store_rlx(&b->count, b->count + 1);
}

static void waitq_remove(WaitBucket *b, WaitEntry *w) {
    *(w->prev ? &w->prev->next : &b->first) = w->next;
    *(w->next ? &w->next->prev : &b->last) = w->prev;
    w->queued = false;
    store_rlx(&b->count, b->count - 1);
}

void waitq_join(WaitEntry *w, const void *addr, uint32_t bits) {
    WaitBucket *b = waitq_bucket(addr);
    M *m = core->enter();
    *w = (WaitEntry){.addr = addr, .gp = self(m), .bits = bits};
    waitq_lock(b);
    waitq_push(b, w);
    core->unlock(&b->lock);
    fence_full(); /* Dekker with has_waiters: queued, then the last try */
    core->leave(m);
}

bool waitq_wait(WaitEntry *w, int reason, int64_t deadline) {
    WaitBucket *b = waitq_bucket(w->addr);
    M *m = core->enter();
    waitq_lock(b);
    bool hit = true, over = w->hit || (deadline != GORT_FOREVER && deadline <= gort_now());
    if (!over) {
        w->parked = true;
        w->ticket = wait_begin(w->gp);
        m = core->park_until(m, &b->lock, reason, deadline, w->ticket, &over);
        if (over) waitq_lock(b);
    }
    if (over) {
        w->parked = false;
        if (w->queued && !w->naps) waitq_remove(b, w);
        hit = w->hit;
        core->unlock(&b->lock);
    }
    core->leave(m);
    return hit;
}

bool waitq_leave(WaitEntry *w) {
    WaitBucket *b = waitq_bucket(w->addr);
    M *m = core->enter();
    waitq_lock(b);
    if (w->queued) waitq_remove(b, w);
    core->unlock(&b->lock);
    core->leave(m);
    return w->hit;
}

/* The first entry for addr (NULL: any); NULL: there is none. */
static WaitEntry *waitq_find(WaitBucket *b, const void *addr, uint32_t bits) {
    uint64_t others = 0;
    WaitEntry *w = b->first;
    for (; w && addr && (w->addr != addr || !(w->bits & bits)); w = w->next)
        others |= waitq_bit(w->addr);
    if (w == NULL) store_rlx(&b->addrs, others);
    return w;
}

/* Takes the first entry for addr (NULL: any) off the queue and hits it; false: there is none. *gp:
 * to be made ready. One whose deadline was faster is not hit, unless it naps: it finds the hit. */
static bool waitq_hit_next(WaitBucket *b, const void *addr, uint32_t bits, G **gp, uint32_t *hits) {
    *gp = NULL;
    waitq_lock(b);
    WaitEntry *w = waitq_find(b, addr, bits);
    if (w) {
        waitq_remove(b, w);
        if (w->parked && wait_claim(w->gp, w->ticket)) *gp = w->gp;
        w->hit = *gp || !w->parked || w->naps;
        *hits += w->hit;
    }
    core->unlock(&b->lock);
    return w != NULL;
}

/* In a section. */
static uint32_t waitq_wake_queued(M *m, WaitBucket *b, const void *addr, uint32_t most,
                                  uint32_t bits) {
    /* at most those queued now: a woken goroutine may come back meanwhile */
    uint32_t n = 0, there = load_rlx(&b->count);
    if (most > there) most = there;
    for (G *gp; n < most && waitq_hit_next(b, addr, bits, &gp, &n);)
        if (gp) core->ready(m, gp);
    return n;
}

uint32_t waitq_wake_some(const void *addr, uint32_t most, uint32_t bits) {
    if (hook_in_child()) return 0;
    bool mine = maybe_here() && stay();
    M *m = core->enter();
    uint32_t n = waitq_wake_queued(m, waitq_bucket(addr), addr, most, bits);
    core->leave(m);
    stay_end(mine);
    return n;
}

/* A handler that has interrupted the runtime may have interrupted the holder of the lock. */
COLD uint32_t waitq_wake_anywhere(const void *addr, uint32_t most, uint32_t bits) {
    if (hook_in_child()) return 0;
    M *m = core->enter_anywhere();
    if (m == NULL) {
        store_rlx(&waitq_bucket(addr)->owed, 1); /* published by owe */
        core->owe();
        return 0;
    }
    uint32_t n = waitq_wake_queued(m, waitq_bucket(addr), addr, most, bits);
    core->leave_anywhere(m);
    return n;
}

/* Wakes all of a bucket that is owed a wake-up: its waiters have to expect one for nothing. */
void waitq_pay(M *m) {
    for (WaitBucket *b = waitq_table; b < waitq_table + WAITQ_BUCKETS; b++)
        if (load_rlx(&b->owed) && xchg_seq(&b->owed, 0))
            waitq_wake_queued(m, b, NULL, UINT32_MAX, EVERY_BIT);
}

const void *waitq_place(const G *gp) {
    for (const WaitBucket *b = waitq_table; b < waitq_table + WAITQ_BUCKETS; b++)
        for (const WaitEntry *w = b->life == core->life() ? b->first : NULL; w; w = w->next)
            if (w->gp == gp && w->parked) return w->addr;
    return NULL;
}

bool waitq_announced(const void *addr) {
    WaitBucket *b = waitq_bucket(addr);
    if (load_rlx(&b->count) == 0 || hook_in_child()) return false;
    M *m = core->enter_anywhere();
    if (m == NULL) return false;
    waitq_lock(b);
    WaitEntry *w = b->first;
    while (w && (w->addr != addr || w->bits != NO_BIT)) w = w->next;
    core->unlock(&b->lock);
    core->leave_anywhere(m);
    return w != NULL;
}

void waitq_sees_less(void) {
    if (load_rlx(&known.unseen) || (core && hook_in_child())) return;
    store_seq(&known.unseen, true); /* Dekker with waitq_join: an entry is found, or it sees this */
    if (!known.threads) return;
    M *m = core->enter();
    for (WaitBucket *b = waitq_table; b < waitq_table + WAITQ_BUCKETS; b++)
        waitq_wake_queued(m, b, NULL, UINT32_MAX, EVERY_BIT);
    core->leave(m);
}

/* A signal has ended a wait. EINTR: the call with it; else its handlers have run. */
static COLD int waitq_interrupted(int reason) {
    if (reason & WAIT_ENDS) return EINTR;
    attend();
    return EBUSY;
}

static int waitq_attempts(void *object, try_fn *attempt, int reason, int64_t deadline) {
    int r;
    for (int64_t pause = PAUSE_FIRST;; pause = pause * 2 > PAUSE_MOST ? PAUSE_MOST : pause * 2) {
        WaitEntry w;
        waitq_join(&w, object, EVERY_BIT);
        r = attempt(object);
        if (r != EBUSY) {
            if (waitq_leave(&w) && r != 0) waitq_wake(object, false); /* pass the hit on */
            break;
        }
        bool seen = !(reason & WAIT_SHARED) && waitq_sees_all();
        int64_t soon = seen ? GORT_FOREVER : deadline_after(pause);
        if (waitq_wait(&w, reason & 0xff, soon < deadline ? soon : deadline))
            pause = PAUSE_FIRST / 2;
        if ((r = attempt(object)) != EBUSY) break;
        if (interrupted() && (r = waitq_interrupted(reason)) == EINTR) break;
        if (deadline != GORT_FOREVER && deadline <= gort_now()) {
            r = ETIMEDOUT;
            break;
        }
    }
    return r;
}

int waitq_acquire(void *object, try_fn *attempt, int reason, int64_t deadline) {
    bool mine = stay();
    int r = waitq_attempts(object, attempt, reason, deadline);
    stay_end(mine);
    return r;
}

int waitq_acquire_once(void *object, try_fn *attempt, int reason, int64_t deadline) {
    reason |= WAIT_ENDS;
    return -staying_until(deadline, -waitq_attempts(object, attempt, reason, deadline));
}
