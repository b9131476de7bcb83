/*
 * The queue that all Ps share, under sched.lock. It has two parts:
 *
 *   global    a FIFO: goroutines that yielded, were preempted, were made ready without a P, or did
 *             not fit into a ring when many were woken. They keep their order.
 *   spilled   batches of half a ring that did not fit when goroutines were *started*, as a deque.
 *
 * Where goroutines start faster than they end (a tree of them: each starts ten and waits), the
 * order in which they run decides how many exist at once. First come, first served means breadth
 * first: all million leaves are there before the first one ends, each with its own cold memory. So
 * the newest spilled batch comes first, which is depth first, in memory that is still in the
 * caches. A tree of a million (skynet) and fib take a third of the time for it.
 *
 * No goroutine starves. Where both parts have something they take turns. Of 32 goroutines out of
 * the batches one is from the oldest batch, and of two one as soon as that batch has waited for
 * OVERDUE: then there is more than can be done soon, and a look takes half a ring instead of one.
 * `debt` keeps these shares in goroutines, since looks differ in size and their pattern may repeat.
 * What is older than SPILLS batches melts together at the old end, and is a FIFO again. A ring that
 * is full sends no goroutine here a second time that is OVERDUE (spill_new in sched.c).
 *
 * One count, sched.global's, is that of both parts. global_count() is a hint for searchers and fast
 * paths; a searcher that gave up reads it again, behind a fence that pairs with the submitter's.
 */
#include "sched/globalq.h"
#include "sched/runq.h"

#define OLDEST_EVERY 32

void global_put(G *gp) {
    lock(&sched.lock, RANK_SCHED);
    glist_push(&sched.global, gp);
    unlock(&sched.lock);
}

void global_put_list(GList *list) {
    lock(&sched.lock, RANK_SCHED);
    glist_append(&sched.global, list);
    unlock(&sched.lock);
}

void global_put_list_head(GList *list) {
    lock(&sched.lock, RANK_SCHED);
    glist_prepend(&sched.global, list);
    unlock(&sched.lock);
}

static uint32_t spill_place(Spilled *s, uint32_t i) { return (s->first + i) % SPILLS; }
static GList *batch_at(Spilled *s, uint32_t i) { return &s->batch[spill_place(s, i)]; }

static void drop_oldest(Spilled *s) {
    s->first = (s->first + 1) % SPILLS;
    s->n--;
}

void global_spill(GList *list) {
    lock(&sched.lock, RANK_SCHED);
    Spilled *s = &sched.spilled;
    if (s->n == SPILLS) { /* the two oldest become one */
        glist_prepend(batch_at(s, 1), batch_at(s, 0));
        s->since[spill_place(s, 1)] = s->since[s->first];
        drop_oldest(s);
    }
    s->count += list->count;
    sched.global.count += list->count;
    s->since[spill_place(s, s->n)] = load_rlx(&sched.coarse);
    *batch_at(s, s->n++) = *list;
    unlock(&sched.lock);
}

void global_flatten_locked(void) {
    Spilled *s = &sched.spilled;
    sched.global.count -= s->count; /* appending counts them again */
    s->count = 0;
    for (; s->n > 0; drop_oldest(s)) glist_append(&sched.global, batch_at(s, 0));
}

bool global_remove_locked(G *gp) {
    global_flatten_locked();
    G *before = NULL, *at = sched.global.head;
    for (; at && at != gp; at = at->schedlink) before = at;
    if (at) glist_remove(&sched.global, before, gp);
    return at != NULL;
}

static bool spilled_late(const Spilled *s) {
    return load_rlx(&sched.coarse) - s->since[s->first] > OVERDUE;
}

/* Whose turn it is. */
static GList *source(Spilled *s) {
    if (s->count == 0) return &sched.global;
    if (s->turn++ % 2 == 1 && sched.global.head != NULL) return &sched.global;
    return batch_at(s, s->debt > 0 ? 0 : s->n - 1);
}

/* What the newest batch gives adds to the debt, what the oldest gives pays it. */
static void count_debt(Spilled *s, bool oldest, uint32_t n) {
    const int32_t most = OLDEST_EVERY * RING;
    int32_t weight = oldest ? 1 - OLDEST_EVERY : spilled_late(s) ? OLDEST_EVERY - 1 : 1;
    s->debt += weight * (int32_t)n;
    if (s->debt > most) s->debt = most;
    if (s->debt < -most) s->debt = -most;
}

static void took(Spilled *s, GList *from, uint32_t n) {
    if (from == &sched.global) return;
    bool oldest = from == batch_at(s, 0);
    count_debt(s, oldest, n);
    s->count -= n;
    sched.global.count -= n;
    if (from->head != NULL) return;
    if (oldest) drop_oldest(s);
    else s->n--; /* it was the newest */
}

/* How many p takes from *from: its share, `max` at most (0: half a ring), as many as have room. */
static uint32_t share(P *p, uint32_t max, uint32_t room, GList **from) {
    uint32_t n = global_count();
    if (n == 0) return 0;
    n = n / load_rlx(&sched.procs) + 1; /* leave the others theirs */
    *from = source(&sched.spilled);
    if (*from != &sched.global && spilled_late(&sched.spilled)) max = 0;
    uint32_t there = *from == &sched.global ? (*from)->count - sched.spilled.count : (*from)->count;
    if (n > there) n = there;
    if (max && n > max) n = max;
    if (n > RING / 2 + 1) n = RING / 2 + 1;
    if (n > room) n = room;
    bump(&p->n.global_gets, n);
    return n;
}

static uint32_t ring_room(P *p) { /* thieves only make more */
    return RING - (load_rlx(&p->tail) - load_rlx(&p->head));
}

static void move_to_ring(P *p, GList *from, uint32_t n) {
    for (; n > 0; n--)
        if (!runq_push(p, glist_pop(from))) fatal("a batch into a full local queue");
}

G *global_get_locked(P *p, uint32_t max) {
    GList *from;
    uint32_t n = share(p, max, ring_room(p) + 1, &from);
    if (n == 0) return NULL;
    G *gp = glist_pop(from);
    move_to_ring(p, from, n - 1);
    took(&sched.spilled, from, n);
    return gp;
}

bool global_join_locked(P *p) {
    GList *from;
    uint32_t room = ring_room(p), n = room ? share(p, 0, room, &from) : 0;
    if (n == 0) return false;
    move_to_ring(p, from, n);
    took(&sched.spilled, from, n);
    return true;
}
