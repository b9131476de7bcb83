/*
 * Whose turn it is: what a P's holder takes from its own queues, and when from the global one.
 *
 * The order is slot, ring, global queue. Two rules keep it fair. Every 61st round the global queue
 * is first (global_due); a round is one goroutine that did not come through the slot, since those
 * in the slot share one slice. And P.turn says when one outside has waited for long enough:
 *
 *               the slice ended (preempt.c); LOOK_GLOBAL; or a timer ran
 *               and the global queue had no turn for a slice (find.c)
 *      TURN_OWN -----------------------------------------------> TURN_GLOBAL
 *         ^ ^                                                      |     |
 *         | '---- the global queue had its turn, or the ring ------'     |  a timer or a guest put
 *         |                                                              v  somebody before it
 *         '------ the global queue had its turn -------------------- TURN_SLEEPER
 *
 * The global queue's turn at the end of a slice: half a ring of it joins the line behind the ring,
 * whose head is next. So goroutines that never block take turns, wherever they were queued. Where
 * the ring is full the global queue's head runs at once, and P.ring_next gives the next turn to the
 * ring. A 61st round in which a timer ran goes from TURN_OWN to TURN_SLEEPER.
 *
 * P.look is how others ask the holder to pass by g0 at its next switch: LOOK_HERE for a timer that
 * is due or a guest, LOOK_GLOBAL for the global queue. find.c turns it into P.turn. Both words
 * together are p_pauses(): while it is 0 a goroutine switches straight to the next (obstacles).
 *
 * Only the holder of the P calls what follows, in a section or on g0.
 */
#ifndef PICK_H
#define PICK_H

#include "sched/globalq.h"
#include "sched/runq.h"

/* What keeps a goroutine from going straight to the next; 0 on nearly every call. nextg: g0 has to
 * run that G first. A second one in its place would be lost. */
INLINE uintptr_t obstacles(M *m, P *p) {
    return (uintptr_t)m->detour | (uintptr_t)m->nextg | load_rlx(&m->attn) | p_pauses(p);
}

INLINE bool global_due(const P *p) { return p->rounds % 61 == 60; }

INLINE void slice_begins(P *p) { add_own(&p->schedtick, 1); }

/* The goroutine that ran goes to the global queue: it is not its own successor. */
INLINE void slice_ended(P *p) { p->turn = global_count() != 0 ? TURN_GLOBAL : TURN_OWN; }

/* gp, which has a stack, is what m runs from here on. */
INLINE void now_runs(M *m, P *p, G *gp) {
    check(load_rlx(&gp->status) == G_RUNNABLE);
    store_rlx(&gp->status, G_RUNNING);
    gp->m = m;
    m->curg = gp;
    bump(&p->n.switches, 1);
}

INLINE G *slot_take(P *p) {
    G *gp = load_rlx(&p->runnext);
    return gp && runnext_take(p, gp) ? gp : NULL;
}

/* May `next` follow `leaver` without a visit to g0? */
typedef bool fits_fn(const G *leaver, const G *next);

/* The next goroutine where it is plain to see, without a look at the clock or the network. NULL:
 * there is none, or g0 has to look. The one from the slot goes on with the slice. */
INLINE G *pick_own(M *m, P *p, const G *leaver, fits_fn *fits) {
    G *gp = load_rlx(&p->runnext);
    if (gp != NULL) {
        if (unlikely(!fits(leaver, gp))) return NULL;
        if (likely(runnext_take(p, gp))) return gp;
    }
    if (unlikely(global_due(p)) && (global_count() != 0 || load_rlx(&p->timers.count) != 0))
        return NULL;
    uint32_t head = load_rlx(&p->head);
    if (head == load_rlx(&p->tail) || unlikely(!fits(leaver, load_rlx(&p->ring[head % RING]))))
        return NULL;
    gp = runq_pop(p);
    if (gp == NULL) return NULL;
    p->rounds++;
    slice_begins(p);
    if (likely(fits(leaver, gp))) return gp;
    m->nextg = gp; /* a thief moved the head meanwhile */
    return NULL;
}

#endif
