/*
 * Time as programs see it: the clock, sleeping, timers, tickers, and channels that tell the time.
 * The heaps are in timer.c; here is what makes them safe to use from outside.
 *
 * A gort_timer is counted: one reference is the program's until gort_timer_free(), one the heap's
 * while the timer is armed. A heap that fires a timer forgets it and passes its reference to
 * timer_fire(). Between these two moments the program may stop, reset or free the timer. So each
 * arming has a number, and under the timer's lock:
 *
 *   stop    if armed, disarms and returns 1. If the heap gives the timer back, its reference is
 *           dropped here; else timer_fire() is under way, has come too late, and drops it.
 *   fire    if its number is current and the timer armed, starts the function in a goroutine of its
 *           own. Otherwise it has come too late.
 *
 * So either "stop returned 1" or "the function is started". The function may free the timer and run
 * on. timer_fire() arms a ticker again, not the heap, which has given its reference away. The next
 * tick is the first multiple of the period after now: late ticks do not pile up.
 *
 * A timer that sends on a channel has a reference to it, and the channel knows the timer. Once that
 * reference is the last, nobody can hear the timer any more: the release that leaves it so ends the
 * timer (timer_unheard), and with it the channel. The ranks (a timer's lock comes before a
 * channel's) let it do so only after the channel is unlocked; so it counts a reference to the timer
 * while it has that lock, without which timer_destroy does not pass.
 *
 * A runtime that ends takes its timers off the heaps and disarms them (timer_forget). TSan: arming
 * releases, the started goroutine acquires.
 */
#include "base/hint.h"
#include "base/fatal.h"
#include "sync/free_later.h"
#include "sched/ender.h"
#include "sync/chan.h"

#define RETRY (10 * GORT_MS) /* no memory for the goroutine of a timer */

/* Leak checkers do not see a timer that only a heap knows. */
#ifdef GORT_ASAN
void __lsan_ignore_object(const void *at);
#define not_a_leak(at) __lsan_ignore_object(at)
#else
#define not_a_leak(at) ((void)0)
#endif

struct gort_timer {
    Timer t; /* the heap's while armed; else lock */
    Refs refs;
    Lock lock; /* RANK_TIMER */
    /* the program: */
    bool freed; /* atomic: read in freed memory where the program uses the timer again */
    /* lock: */
    bool armed;
    uint32_t seq;   /* of the latest arming */
    int64_t period; /* 0: one shot */
    /* constant: */
    gort_fn *fn;
    void *arg;
    gort_chan *ch; /* instead of fn: where the time is sent; retained */
};

/* ---- the clock and sleeping ------------------------------------------------------------------ */

EXPORT int64_t gort_now(void) { return os_now(); }

static void sleep_yield(void) {
    M *m = enter();
    if (m->plain) os_yield();
    else m = yield(m);
    leave(m);
}

/* To the end: 0; or the error of the context in use. */
static int sleep_until(int64_t deadline) {
    int ended;
    M *m = enter();
    deadline = wait_limit(m, deadline);
    if (use_cause(m) == 0)
        m = park_until(m, NULL, WAIT_SLEEP, deadline, wait_begin(self(m)), &ended);
    int r = use_cause(m);
    leave(m);
    return r;
}

EXPORT int gort_sleep(int64_t ns) {
    if (in_forked_child()) return -ENOTCONN;
    garbage_collect();
    if (ns > 0) return sleep_until(time_after(os_now(), ns));
    sleep_yield();
    return 0;
}

EXPORT int gort_sleep_until(int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    garbage_collect();
    M *m = getm();
    if (deadline > os_now()) return sleep_until(deadline);
    hint_passed(deadline);
    if (m == NULL || m->pins == 0) sleep_yield(); /* pinned: a passed deadline is allowed */
    return 0;
}

Refs *garbage; /* atomic: a stack; emptied as a whole, so there is no ABA */

void garbage_leave(Refs *r) {
    r->next = load_rlx(&garbage);
    while (!cas_rel(&garbage, &r->next, r)) {} /* pairs with the exchange below */
}

NOINLINE void garbage_collect_slow(void) {
    for (Refs *r = xchg_acq(&garbage, NULL), *next; r != NULL; r = next) {
        next = r->next;
        r->destroy(r);
    }
}

/* ---- timer objects --------------------------------------------------------------------------- */

/* The channel's timer is t; NULL: it has none any more. */
static void timer_told(gort_chan *ch, Refs *t) {
    M *m = enter();
    lock(&ch->lock, RANK_PRIM);
    ch->timer = t;
    unlock(&ch->lock);
    leave(m);
}

static void timer_destroy(Refs *r) {
    gort_timer *t = container_of(r, gort_timer, refs);
    tsan_acquire(r);
    if (t->ch && !in_forked_child()) timer_told(t->ch, NULL);
    gort_chan_release(t->ch);
    quiet_free(t);
}

/* The runtime has ended; the heap's reference comes with the call. */
static void timer_forget(Timer *t) {
    gort_timer *own = t->arg;
    lock(&own->lock, RANK_TIMER);
    own->armed = false;
    unlock(&own->lock);
    refs_drop_later(&own->refs);
}

static void timer_fire(M *m, void *arg, uint32_t seq);

/* Puts t on a heap, with a reference the caller has counted. Locked. */
static int timer_arm(M *m, gort_timer *t, int64_t when) {
    t->t = (Timer){.when = when, .fn = timer_fire, .arg = t, .forget = timer_forget};
    t->t.seq = ++t->seq;
    int r = timer_add(m, &t->t);
    t->armed = r == 0;
    return r;
}

/* Takes t off. *refs counts references the heap gave back. Locked. */
static bool timer_disarm(gort_timer *t, int *refs) {
    bool was = t->armed;
    t->armed = false;
    if (was && timer_del(&t->t)) (*refs)++;
    return was;
}

/* The next tick after now: a multiple of the period from the last due time. */
static int64_t next_tick(const gort_timer *t, int64_t now) {
    int64_t late = now - t->t.when, ticks;
    if (late < 0) late = 0;
    if (__builtin_mul_overflow(t->period, 1 + late / t->period, &ticks)) return NEVER;
    return time_after(t->t.when, ticks);
}

/* Does what the timer is for. In the scheduler; 0 or -ENOMEM. */
static int timer_act(M *m, gort_timer *t, int64_t now) {
    if (t->ch == NULL) return go_start(m, NULL, t->fn, t->arg, NULL, 0, (uintptr_t)t->fn + 1);
    gort_chan_try_send(t->ch, &now); /* full: the receiver is slow, the tick is dropped */
    return 0;
}

/* Called by the heap, whose reference to t comes with the call. */
static void timer_fire(M *m, void *arg, uint32_t seq) {
    gort_timer *t = arg;
    bool again = false;
    int64_t now = os_now();
    tsan_acquire(t);
    lock(&t->lock, RANK_TIMER);
    if (t->armed && t->seq == seq) { /* else stopped, or armed anew */
        t->armed = false;
        if (timer_act(m, t, now) < 0) again = timer_arm(m, t, time_after(now, RETRY)) == 0;
        else if (t->period > 0) again = timer_arm(m, t, next_tick(t, now)) == 0;
    }
    unlock(&t->lock);
    if (!again) refs_drop_later(&t->refs);
}

/* An armed timer, with a reference for the program. NULL: no memory, no runtime. */
static gort_timer *timer_make(int64_t when, int64_t period, gort_fn *fn, void *arg, gort_chan *ch) {
    if (!runtime_running()) return NULL;
    garbage_collect();
    gort_timer *t = quiet_alloc(sizeof *t);
    if (t == NULL) return NULL;
    *t = (gort_timer){.period = period, .fn = fn, .arg = arg, .ch = ch};
    t->refs = (Refs){.count = 2, .destroy = timer_destroy};
    tsan_release(t);
    M *m = enter();
    lock(&t->lock, RANK_TIMER);
    int r = timer_arm(m, t, when);
    unlock(&t->lock);
    leave(m);
    if (r == 0) return t;
    quiet_free(t);
    return NULL;
}

EXPORT gort_timer *gort_timer_new(int64_t ns, gort_fn *fn, void *arg) {
    if (fn == NULL) return NULL;
    return timer_make(time_after(os_now(), ns > 0 ? ns : 0), 0, fn, arg, NULL);
}

EXPORT gort_timer *gort_ticker_new(int64_t period, gort_fn *fn, void *arg) {
    if (fn == NULL || period <= 0) return NULL;
    return timer_make(time_after(os_now(), period), period, fn, arg, NULL);
}

NORETURN static void used_late(const gort_timer *t, const char *call) {
    fatal("%s: timer %p is used after gort_timer_free", call, (const void *)t);
}
static void check_timer(const gort_timer *t, const char *call) {
    if (unlikely(load_rlx(&t->freed))) used_late(t, call);
}

static bool timer_halt(gort_timer *t) {
    int back = 0;
    M *m = enter();
    lock(&t->lock, RANK_TIMER);
    bool was = timer_disarm(t, &back);
    unlock(&t->lock);
    leave(m);
    if (back) refs_drop(&t->refs);
    return was;
}

/* Outside of sections. */
static void timer_drop(gort_timer *t) {
    timer_halt(t);
    refs_drop(&t->refs);
    garbage_collect();
}

void timer_unheard(Refs *r) { timer_drop(container_of(r, gort_timer, refs)); }

EXPORT int gort_timer_stop(gort_timer *t) {
    if (in_forked_child()) return -ENOTCONN;
    if (t == NULL) return -EINVAL; /* there was no memory for it */
    check_timer(t, "gort_timer_stop");
    return timer_halt(t);
}

EXPORT int gort_timer_reset(gort_timer *t, int64_t ns) {
    if (!runtime_running()) return -ENOTCONN;
    if (t == NULL) return -EINVAL;
    check_timer(t, "gort_timer_reset");
    if (t->period > 0 && ns <= 0) return -EINVAL;
    int64_t when = time_after(os_now(), ns > 0 ? ns : 0);
    int back = 0;
    tsan_release(t);
    M *m = enter();
    lock(&t->lock, RANK_TIMER);
    bool was = timer_disarm(t, &back);
    if (t->period > 0) t->period = ns;
    if (back == 0) add_rlx(&t->refs.count, 1); /* else the returned reference serves again */
    int r = timer_arm(m, t, when);
    unlock(&t->lock);
    leave(m);
    if (r < 0) refs_drop(&t->refs);
    return r < 0 ? r : was;
}

EXPORT void gort_timer_free(gort_timer *t) {
    if (t == NULL || in_forked_child()) return;
    M *m = enter(); /* a child that shares the memory stops here, and leaves no mark */
    bool before = load_rlx(&t->freed);
    store_rlx(&t->freed, true);
    leave(m);
    if (unlikely(before)) used_late(t, "gort_timer_free");
    timer_drop(t);
}

/* ---- channels that tell the time ------------------------------------------------------------- */

/* A new channel that a timer sends on. owner NULL: only the heap has the timer. */
static gort_chan *timer_chan(int64_t ns, int64_t period, gort_timer **owner) {
    if (!runtime_running()) return NULL;
    gort_chan *ch = gort_chan_new(sizeof(int64_t), 1);
    if (ch == NULL) return NULL;
    gort_timer *t = timer_make(time_after(os_now(), ns), period, NULL, NULL, gort_chan_retain(ch));
    if (t == NULL) {
        gort_chan_release(ch);
        gort_chan_release(ch);
        return NULL;
    }
    timer_told(ch, &t->refs);
    if (period == 0) not_a_leak(t);
    if (owner != NULL) *owner = t;
    else refs_drop(&t->refs);
    return ch;
}

EXPORT gort_chan *gort_after(int64_t ns) { return timer_chan(ns > 0 ? ns : 0, 0, NULL); }

/* Without an owner it ticks until the channel is released, as time.Tick. */
EXPORT gort_chan *gort_tick(int64_t period, gort_timer **owner) {
    return period > 0 ? timer_chan(period, period, owner) : NULL;
}
