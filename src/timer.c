/*
 * Timers: one 4-ary heap per P, each under its own lock.
 *
 * A timer may live on a stack (a sleeper's, a waiter's with a deadline), so it leaves the heap
 * before timer_del() returns or its function runs; removal by index costs little, because a
 * deadline that is deleted early is usually a leaf. The function is called without the lock, with
 * the arguments copied while it was held: the Timer itself may be gone by then. What the arguments
 * point to must outlive that moment: Gs are type-stable and compare tickets, gort_timer objects
 * hold a reference while they are armed.
 *
 * `first` is published so that others (thieves, the poller, the monitor) see without the lock
 * when something is due. `heap` of a timer changes under the lock of the heap it names; a deleter
 * takes that lock and looks again.
 */
#include "timer.h"
#include "sched.h"
#include "wake.h"

#define NOT_ARMED NULL

/* The heap's array is mapped by hand: it is grown under a lock, and malloc is forbidden there. */
static bool grow(TimerHeap *h) {
    uint32_t capacity = h->capacity ? h->capacity * 2 : 512;
    Timer **at = os_map((size_t)capacity * sizeof *at, false);
    if (at == NULL) return false;
    if (h->at) {
        memcpy(at, h->at, h->count * sizeof *at);
        os_unmap(h->at, (size_t)h->capacity * sizeof *at);
    }
    h->at = at;
    h->capacity = capacity;
    return true;
}

static void place(TimerHeap *h, uint32_t i, Timer *t) {
    h->at[i] = t;
    t->index = i;
}

static uint32_t sift_up(TimerHeap *h, uint32_t i) {
    Timer *t = h->at[i];
    while (i > 0) {
        uint32_t up = (i - 1) / 4;
        if (h->at[up]->when <= t->when) break;
        place(h, i, h->at[up]);
        i = up;
    }
    place(h, i, t);
    return i;
}

static void sift_down(TimerHeap *h, uint32_t i) {
    Timer *t = h->at[i];
    for (;;) {
        uint32_t child = 4 * i + 1, least = child;
        if (child >= h->count) break;
        for (uint32_t c = child + 1; c < child + 4 && c < h->count; c++)
            if (h->at[c]->when < h->at[least]->when) least = c;
        if (h->at[least]->when >= t->when) break;
        place(h, i, h->at[least]);
        i = least;
    }
    place(h, i, t);
}

static void publish_first(TimerHeap *h) {
    store_rel(&h->first, h->count ? h->at[0]->when : GORT_FOREVER);
}

static bool insert(TimerHeap *h, Timer *t) {
    if (h->count == h->capacity && !grow(h)) return false;
    h->at[h->count] = t;
    store_rlx(&h->count, h->count + 1);
    store_rel(&t->heap, h);
    if (sift_up(h, h->count - 1) == 0) publish_first(h);
    return true;
}

static void remove_at(TimerHeap *h, uint32_t i) {
    store_rel(&h->at[i]->heap, NOT_ARMED);
    uint32_t last = h->count - 1;
    store_rlx(&h->count, last);
    if (i != last) {
        place(h, i, h->at[last]);
        if (sift_up(h, i) == i) sift_down(h, i);
    }
    if (i == 0) publish_first(h);
}

int timer_add(M *m, Timer *t) {
    if (t->when < 0) t->when = GORT_FOREVER - 1;
    TimerHeap *h = &(m->p ? m->p : sched.ps[0])->timers;
    lock(&h->lock, RANK_TIMERS);
    bool ok = insert(h, t);
    bool earliest = ok && t->index == 0;
    int64_t when = t->when;
    unlock(&h->lock);
    if (!ok) return -ENOMEM;
    if (earliest) wake_for_timer(m, when);
    return 0;
}

bool timer_del(Timer *t) {
    for (;;) {
        TimerHeap *h = load_acq(&t->heap);
        if (h == NOT_ARMED) return false;
        lock(&h->lock, RANK_TIMERS);
        if (load_rlx(&t->heap) == h) {
            remove_at(h, t->index);
            unlock(&h->lock);
            return true;
        }
        unlock(&h->lock);
    }
}

bool timer_take(TimerHeap *h, int64_t now, timer_fn **fn, void **arg, uint32_t *seq) {
    if (load_acq(&h->first) > now) return false;
    bool due = false;
    lock(&h->lock, RANK_TIMERS);
    if (h->count > 0 && h->at[0]->when <= now) {
        Timer *t = h->at[0];
        *fn = t->fn;
        *arg = t->arg;
        *seq = t->seq;
        due = true;
        if (t->period > 0) { /* keeps its place in the beat however late it is */
            int64_t next;
            int64_t skip = (now - t->when) / t->period + 1;
            if (__builtin_mul_overflow(t->period, skip, &next) ||
                __builtin_add_overflow(t->when, next, &next))
                next = GORT_FOREVER - 1;
            t->when = next;
            sift_down(h, 0);
            publish_first(h);
        } else {
            remove_at(h, 0);
        }
    }
    unlock(&h->lock);
    return due;
}

int64_t timers_first(void) {
    int64_t first = GORT_FOREVER;
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        int64_t when = load_acq(&sched.ps[i]->timers.first);
        if (when < first) first = when;
    }
    return first;
}

/* With the world stopped: a P goes away. Plain threads may still delete, so both locks are held. */
void timers_move(TimerHeap *to, TimerHeap *from) {
    lock(&from->lock, RANK_TIMERS);
    lock(&to->lock, RANK_TIMERS);
    for (uint32_t i = 0; i < from->count; i++)
        if (!insert(to, from->at[i])) fatal("no memory to move timers to another P");
    store_rlx(&from->count, 0);
    publish_first(from);
    unlock(&to->lock);
    unlock(&from->lock);
}

void timers_clear(TimerHeap *h) {
    lock(&h->lock, RANK_TIMERS);
    for (uint32_t i = 0; i < h->count; i++) store_rel(&h->at[i]->heap, NOT_ARMED);
    store_rlx(&h->count, 0);
    publish_first(h);
    unlock(&h->lock);
}
