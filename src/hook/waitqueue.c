/*
 * Goroutines that wait for a thread-level lock: queues by address.
 *
 * The locks stay libc's own, so that plain threads and goroutines exclude each other. A goroutine
 * only ever tries; if that fails it queues here, tries once more, and parks. Whoever releases by
 * one of the hooked functions looks at the queue after libc has released: Dekker, see released().
 *
 * A waiter lives on the stack of who waits. It is hit at most once: before it has parked (the hit
 * is found by sleeper_wait) or by claiming the park. One whose deadline was faster is passed over,
 * and the next one gets the hit.
 *
 * Goroutines that still wait when their runtime ends will never run again, and their stacks are
 * gone: a queue of another life is forgotten by whoever comes next.
 */
#include "hook/hook_internal.h"

Bucket buckets[BUCKETS];

static void lock_bucket(Bucket *b) {
    core->lock(&b->lock);
    uint32_t life = core->life();
    if (likely(b->life == life)) return;
    b->life = life;
    b->first = b->last = NULL;
    store_rlx(&b->count, 0);
}

static void push(Bucket *b, Sleeper *w) {
    w->next = NULL;
    w->prev = b->last;
    *(b->last ? &b->last->next : &b->first) = w;
    b->last = w;
    w->queued = true;
    store_rlx(&b->count, b->count + 1);
}

static void take_off(Bucket *b, Sleeper *w) {
    *(w->prev ? &w->prev->next : &b->first) = w->next;
    *(w->next ? &w->next->prev : &b->last) = w->prev;
    w->queued = false;
    store_rlx(&b->count, b->count - 1);
}

void sleeper_queue(Sleeper *w, const void *addr, uint32_t bits) {
    Bucket *b = bucket_of(addr);
    M *m = core->enter();
    *w = (Sleeper){.addr = addr, .gp = self(m), .bits = bits};
    lock_bucket(b);
    push(b, w);
    core->unlock(&b->lock);
    fence_full(); /* against released(): queued, then the last try */
    core->leave(m);
}

/* The bucket's lock. */
static bool end_wait(Bucket *b, Sleeper *w) {
    w->parked = false;
    if (w->queued && !w->naps) take_off(b, w);
    return w->hit;
}

static bool wait_once(Sleeper *w, int reason, int64_t deadline) {
    Bucket *b = bucket_of(w->addr);
    bool timed_out = false, hit = true;
    M *m = core->enter();
    lock_bucket(b);
    if (w->hit || (deadline != GORT_FOREVER && deadline <= gort_now())) {
        hit = end_wait(b, w);
        core->unlock(&b->lock);
        core->leave(m);
        return hit;
    }
    w->parked = true;
    w->ticket = wait_begin(w->gp);
    m = core->park_until(m, &b->lock, reason, deadline, w->ticket, &timed_out);
    if (timed_out) {
        lock_bucket(b);
        hit = end_wait(b, w);
        core->unlock(&b->lock);
    }
    core->leave(m);
    return hit;
}

bool sleeper_wait(Sleeper *w, int reason, int64_t deadline) {
    w->naps = false;
    return wait_once(w, reason, deadline);
}

bool sleeper_nap(Sleeper *w, int reason, int64_t deadline) {
    w->naps = true;
    return wait_once(w, reason, deadline);
}

bool sleeper_cancel(Sleeper *w) {
    Bucket *b = bucket_of(w->addr);
    M *m = core->enter();
    lock_bucket(b);
    if (w->queued) take_off(b, w);
    core->unlock(&b->lock);
    core->leave(m);
    return w->hit;
}

/* The bucket's lock: hits w, which is off the queue. False: its deadline was faster. *gp: to be
 * made ready. One that naps is awake then, and finds that it was hit. */
static bool hit(Sleeper *w, G **gp) {
    bool sleeps = w->parked && wait_claim(w->gp, w->ticket);
    *gp = sleeps ? w->gp : NULL;
    w->hit = sleeps || !w->parked || w->naps;
    return w->hit;
}

/* Takes the first one for addr (NULL: any) off the queue and hits it; 0: there is none, else 1 +
 * whether it was hit. *gp: as hit(). */
static int hit_next(Bucket *b, const void *addr, uint32_t bits, G **gp) {
    int found = 0;
    *gp = NULL;
    lock_bucket(b);
    Sleeper *w = b->first;
    while (w && addr && (w->addr != addr || !(w->bits & bits))) w = w->next;
    if (w) {
        take_off(b, w);
        found = 1 + hit(w, gp);
    }
    core->unlock(&b->lock);
    return found;
}

/* In a section. */
static uint32_t wake_queued(M *m, Bucket *b, const void *addr, uint32_t most, uint32_t bits) {
    /* one that comes back while we wake the others is not meant */
    uint32_t n = 0, there = load_rlx(&b->count);
    int found = 1;
    if (most > there) most = there;
    while (n < most && found) {
        G *gp;
        found = hit_next(b, addr, bits, &gp);
        if (found != 2) continue;
        n++;
        if (gp) core->ready(m, gp);
    }
    return n;
}

uint32_t queue_wake_some(const void *addr, uint32_t most, uint32_t bits) {
    if (elsewhere()) return 0;
    bool parks = maybe_here() != NULL;
    Stay s;
    if (parks) stay(&s);
    M *m = core->enter();
    uint32_t n = wake_queued(m, bucket_of(addr), addr, most, bits);
    core->leave(m);
    if (parks) stay_end(&s);
    return n;
}

/* Where this thread has interrupted itself in the runtime, the bucket's lock may be its own. */
COLD uint32_t queue_wake_anywhere(const void *addr, uint32_t most, uint32_t bits) {
    if (elsewhere()) return 0;
    M *m = core->enter_anywhere();
    if (m == NULL) {
        store_rlx(&bucket_of(addr)->owed, 1); /* published by owe */
        core->owe();
        return 0;
    }
    uint32_t n = wake_queued(m, bucket_of(addr), addr, most, bits);
    core->leave_anywhere(m);
    return n;
}

/* Everybody in a bucket that is owed something: whoever waits here has to expect that for
 * nothing. */
void queue_pay(M *m) {
    for (Bucket *b = buckets; b < buckets + BUCKETS; b++)
        if (load_rlx(&b->owed) && xchg_seq(&b->owed, 0))
            wake_queued(m, b, NULL, UINT32_MAX, EVERY_BIT);
}

int wait_for(void *object, try_fn *attempt, int reason, int64_t deadline) {
    Stay s;
    stay(&s);
    int r;
    for (int64_t pause = PAUSE_FIRST;; pause = pause * 2 > PAUSE_MOST ? PAUSE_MOST : pause * 2) {
        Sleeper w;
        sleeper_queue(&w, object, EVERY_BIT);
        r = attempt(object);
        if (r != EBUSY) {
            if (sleeper_cancel(&w) && r != 0) queue_wake(object, false); /* not ours to keep */
            break;
        }
        int64_t soon = after(pause);
        if (sleeper_wait(&w, reason, soon < deadline ? soon : deadline)) pause = PAUSE_FIRST / 2;
        if ((r = attempt(object)) != EBUSY) break;
        if (deadline != GORT_FOREVER && deadline <= gort_now()) {
            r = ETIMEDOUT;
            break;
        }
    }
    stay_end(&s);
    return r;
}
