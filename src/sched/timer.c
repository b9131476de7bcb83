/*
 * Timers: one 4-ary heap per P, each under its own lock.
 *
 * A timer may live on a stack (of a sleeper, or a waiter with a deadline), so it leaves the heap
 * before timer_del() returns or its function runs. The heap never looks at the timers it sorts,
 * which are as many cold pages: a node holds the time and the number of a slot, the slot holds the
 * timer and the node's place, both in dense arrays. The function is called without the lock, with
 * the arguments copied while it was held: the Timer may be gone by then. What the arguments point
 * to must outlive that: Gs are type-stable and compare tickets, an armed gort_timer is held.
 *
 * If the arrays cannot grow, for want of memory, a timer is chained: no wait may end early, and a
 * sleep cannot report an error. The chain needs no memory (the link is in the timer), is sorted,
 * and takes linear time. Two laws hold under the lock: there is a chain only behind a full heap,
 * and no timer in it is due before the first of the heap. So readers of `count` and `first`, and
 * timer_take, need not know of it. A place that gets free is filled from the chain. A P gets its
 * first arrays when it is made, so a full heap is never empty.
 *
 * `first` is published: thieves, the poller and the monitor see without the lock what is due. A
 * timer's `heap` changes under the lock of the heap it names: timer_del() locks, and looks again.
 */
#include "sched/timer.h"
#include "sched/wake.h"

#define NOT_ARMED NULL
#define CHAINED UINT32_MAX

/* The arrays are mapped by hand: they grow under a lock, and malloc is forbidden there. */
static void *bigger(void *old, size_t size, uint32_t from, uint32_t to) {
    void *at = os_map(size * to, false);
    if (at && old) memcpy(at, old, size * from);
    return at;
}

static bool grow(TimerHeap *h) {
    uint32_t from = h->capacity, to = from ? from * 2 : 512;
    TimerNode *at = bigger(h->at, sizeof *at, from, to);
    TimerSlot *table = bigger(h->slots, sizeof *table, from, to);
    if (at == NULL || table == NULL) {
        if (at) os_unmap(at, sizeof *at * to);
        if (table) os_unmap(table, sizeof *table * to);
        return false;
    }
    if (from) {
        os_unmap(h->at, sizeof *at * from);
        os_unmap(h->slots, sizeof *table * from);
    }
    /* the new slots are free; the last points past the end */
    for (uint32_t i = from; i < to; i++) table[i].place = i + 1;
    h->free_slot = from;
    h->at = at;
    h->slots = table;
    h->capacity = to;
    return true;
}

bool timers_prepare(TimerHeap *h) { return h->capacity > 0 || grow(h); }

static void place(TimerHeap *h, uint32_t i, TimerNode node) {
    h->at[i] = node;
    h->slots[node.slot].place = i;
}

static uint32_t sift_up(TimerHeap *h, uint32_t i) {
    TimerNode node = h->at[i];
    while (i > 0) {
        uint32_t up = (i - 1) / 4;
        if (h->at[up].when <= node.when) break;
        place(h, i, h->at[up]);
        i = up;
    }
    place(h, i, node);
    return i;
}

static void sift_down(TimerHeap *h, uint32_t i) {
    TimerNode node = h->at[i];
    for (;;) {
        uint32_t child = 4 * i + 1, least = child;
        if (child >= h->count) break;
        for (uint32_t c = child + 1; c < child + 4 && c < h->count; c++)
            if (h->at[c].when < h->at[least].when) least = c;
        if (h->at[least].when >= node.when) break;
        place(h, i, h->at[least]);
        i = least;
    }
    place(h, i, node);
}

static void publish_first(TimerHeap *h) {
    store_rel(&h->first, h->count ? h->at[0].when : GORT_FOREVER);
}

/* Into a heap with a free place. True: t is the earliest. */
static bool heap_push(TimerHeap *h, Timer *t) {
    uint32_t slot = h->free_slot;
    h->free_slot = h->slots[slot].place;
    h->slots[slot].timer = t;
    t->slot = slot;
    h->at[h->count] = (TimerNode){t->when, slot};
    store_rlx(&h->count, h->count + 1);
    store_rel(&t->heap, h);
    bool first = sift_up(h, h->count - 1) == 0;
    if (first) publish_first(h);
    return first;
}

static void chain_add(TimerHeap *h, Timer *t) {
    Timer **at = &h->chain;
    while (*at && (*at)->when <= t->when) at = &(*at)->next;
    t->slot = CHAINED;
    t->next = *at;
    *at = t;
    store_rel(&t->heap, h);
}

/* Likewise, into a heap that is full and cannot grow. A t that is the earliest takes the place of
 * the heap's first, which is chained. */
static NOINLINE bool push_chained(TimerHeap *h, Timer *t) {
    uint32_t slot = h->at[0].slot;
    bool first = t->when < h->at[0].when;
    if (first) {
        chain_add(h, h->slots[slot].timer);
        h->slots[slot].timer = t;
        h->at[0].when = t->when;
        t->slot = slot;
        store_rel(&t->heap, h);
        publish_first(h);
    } else {
        chain_add(h, t);
    }
    return first;
}

/* Fills free places of the heap from the chain. */
static NOINLINE void take_from_chain(TimerHeap *h) {
    while (h->chain && h->count < h->capacity) {
        Timer *t = h->chain;
        h->chain = t->next;
        heap_push(h, t);
    }
}

/* True: t is the earliest. */
static bool insert(TimerHeap *h, Timer *t) {
    while (unlikely(h->count == h->capacity)) {
        if (!grow(h)) return push_chained(h, t);
        take_from_chain(h);
    }
    return heap_push(h, t);
}

bool timer_insert(TimerHeap *h, Timer *t) { return insert(h, t); }

static void remove_at(TimerHeap *h, uint32_t i) {
    uint32_t slot = h->at[i].slot, last = h->count - 1;
    store_rel(&h->slots[slot].timer->heap, NOT_ARMED);
    h->slots[slot].place = h->free_slot;
    h->free_slot = slot;
    store_rlx(&h->count, last);
    if (i != last) {
        place(h, i, h->at[last]);
        if (sift_up(h, i) == i) sift_down(h, i);
    }
    if (unlikely(h->chain != NULL)) take_from_chain(h);
    if (i == 0) publish_first(h);
}

static void remove_timer(TimerHeap *h, Timer *t) {
    if (likely(t->slot != CHAINED)) {
        remove_at(h, h->slots[t->slot].place);
        return;
    }
    Timer **at = &h->chain;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    store_rel(&t->heap, NOT_ARMED);
}

int timer_add(M *m, Timer *t) {
    /* the end of the runtime has cleared the heaps, or will */
    if (unlikely(m->p == NULL) && !load_acq(&sched.running)) return -ENOTCONN;
    TimerHeap *h = &(m->p ? m->p : sched.ps[0])->timers;
    lock(&h->lock, RANK_TIMERS);
    int64_t when = t->when;
    bool earliest = insert(h, t);
    unlock(&h->lock);
    if (earliest) wake_for_timer(m, when);
    return 0;
}

bool timer_del(Timer *t) {
    for (;;) {
        TimerHeap *h = load_acq(&t->heap);
        if (h == NOT_ARMED) return false;
        lock(&h->lock, RANK_TIMERS);
        if (load_rlx(&t->heap) == h) {
            remove_timer(h, t);
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
    if (h->count > 0 && h->at[0].when <= now) {
        Timer *t = h->slots[h->at[0].slot].timer;
        *fn = t->fn;
        *arg = t->arg;
        *seq = t->seq;
        due = true;
        remove_at(h, 0);
    }
    unlock(&h->lock);
    return due;
}

int64_t timers_first(void) {
    int64_t first = GORT_FOREVER;
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) {
        int64_t when = load_acq(&sched.ps[i]->timers.first);
        if (when < first) first = when;
    }
    return first;
}

static void forget_all(TimerHeap *h) {
    for (uint32_t i = 0; i < h->capacity; i++) h->slots[i].place = i + 1;
    h->free_slot = 0;
    h->chain = NULL;
    store_rlx(&h->count, 0);
    publish_first(h);
}

/* With the world stopped: the P of `from` goes away. Both locks: plain threads may still delete. */
void timers_move(TimerHeap *to, TimerHeap *from) {
    lock(&from->lock, RANK_TIMERS);
    lock(&to->lock, RANK_TIMERS);
    for (uint32_t i = 0; i < from->count; i++) insert(to, from->slots[from->at[i].slot].timer);
    for (Timer *t = from->chain, *next; t != NULL; t = next) {
        next = t->next;
        insert(to, t);
    }
    forget_all(from);
    unlock(&to->lock);
    unlock(&from->lock);
}

/* Takes the last of the heap off; NULL: there is none. */
static Timer *take_last(TimerHeap *h) {
    Timer *t = NULL;
    lock(&h->lock, RANK_TIMERS);
    if (h->count > 0) {
        t = h->slots[h->at[h->count - 1].slot].timer;
        remove_at(h, h->count - 1);
    }
    unlock(&h->lock);
    return t;
}

/* One at a time: plain threads may delete meanwhile, and `forget` takes locks of its own. */
void timers_clear(TimerHeap *h) {
    for (Timer *t; (t = take_last(h)) != NULL;)
        if (t->forget) t->forget(t);
}
