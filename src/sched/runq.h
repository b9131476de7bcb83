/*
 * The run queue of a P: a ring of 256 that the holder fills and thieves empty, and the LIFO slot.
 *
 *   head   the next one to take; the holder and thieves move it by CAS
 *   tail   the next free place; the holder alone moves it, by a release store
 *
 * The owner alone puts. A thief copies half of what it sees and then CASes the head; if it
 * saw head and tail from different moments, the difference may be more than half the ring, which is
 * an inconsistent read and retried. A place is written again only after the head has passed it, so
 * a thief whose CAS succeeds has copied what was there.
 *
 * With one P there are no thieves (until a stopped world), and plain stores move head and slot.
 */
#ifndef RUNQ_H
#define RUNQ_H

#include "runtime.h"

INLINE bool runq_alone(void) { return load_rlx(&sched.procs) == 1; }

/* Holder: puts gp at the tail. False: the ring is full, see runq_overflow(). */
INLINE bool runq_push(P *p, G *gp) {
    uint32_t head = load_acq(&p->head); /* pairs with a thief's CAS: its copies are done */
    uint32_t tail = load_rlx(&p->tail);
    if (unlikely(tail - head >= RING)) return false;
    store_rlx(&p->ring[tail % RING], gp);
    store_rel(&p->tail, tail + 1); /* pairs with runq_grab */
    return true;
}

/* Holder: takes from the head. */
INLINE G *runq_pop(P *p) {
    uint32_t tail = load_rlx(&p->tail);
    for (uint32_t head = load_acq(&p->head);;) {
        if (head == tail) return NULL;
        G *gp = load_rlx(&p->ring[head % RING]);
        if (runq_alone()) {
            store_rlx(&p->head, head + 1);
            return gp;
        }
        if (cas_rel(&p->head, &head, head + 1)) return gp;
    }
}

/* Holder. Full ordering, wake.c's "publish, fence": on x86-64 the exchange is both. */
INLINE G *runnext_swap(P *p, G *gp) {
    if (likely(runq_alone())) {
        G *old = p->runnext;
        store_rlx(&p->runnext, gp);
        return old;
    }
    G *old = xchg_seq(&p->runnext, gp);
    fence_after_rmw();
    return old;
}

/* Holder, or a thief in its last round. */
INLINE bool runnext_take(P *p, G *gp) {
    if (likely(runq_alone())) {
        store_rlx(&p->runnext, NULL);
        return true;
    }
    G *expect = gp;
    return cas_acq_rel(&p->runnext, &expect, NULL);
}

/* Hints for any thread: how many are in the ring and the slot, and whether there are none. */
INLINE uint32_t runq_length(P *p) {
    uint32_t n = load_acq(&p->tail) - load_acq(&p->head);
    return (n > RING ? 0 : n) + (load_rlx(&p->runnext) != NULL);
}
bool runq_empty(P *p);

/* Holder, ring full: takes half of it off into list, gp at its end. False: a thief made room. */
bool runq_overflow(P *p, G *gp, GList *list);

/* Holder: puts list before all that is in the ring. Each is half a ring at most. */
void runq_put_first(P *p, GList *list);

/* Thief: moves half of victim's ring into p's, and gives the last one. *moved counts all. */
G *runq_steal(P *p, P *victim, bool slot_too, uint32_t *moved);

/* With the world stopped: takes gp off. False: it is not here. */
bool runq_remove(P *p, G *gp);

/* Holder, or with the world stopped: everything into list. */
void runq_drain(P *p, GList *list);

#endif
