/*
 * The plain cases of park() and ready(), in the frame of the call itself (that of a yield is in
 * sched.c).
 *
 * Most of what sched.c asks before it switches has the answer no: is somebody locked to this
 * thread, has the slice ended, is there a trace, is this the last moment before a look at the
 * global queue. A function call and a branch for each answer cost more than the switch: processors
 * take many instructions in a cycle but one or two branches. So here all of these words are or'ed,
 * and if nothing speaks against it, the usual thing is done at once; otherwise nothing has been
 * touched and sched.c does it the long way. A round trip over a channel takes 560 instructions with
 * these paths and 640 without, a yield 148 instead of 230.
 *
 * The taken branches count most, since it is by these that the jump behind a switch is predicted
 * (arch.h): in what follows, and in chan.h, the usual case is the one that falls through.
 *
 * A step above sched.h, and for channels, where all of a round trip is switching.
 */
#ifndef FASTPATH_H
#define FASTPATH_H

#include "sched/pick.h"
#include "sched/sched.h"
#include "sched/trace.h"
#include "sched/wake.h"
#include "sched/slotwatch.h"

/* gp is in a nested section, pinned or in a blocking call: it may not leave. 0: it may. */
INLINE uint32_t not_plain(M *m, G *gp) {
    return (m->locks ^ 1) | (load_rlx(&gp->status) ^ G_RUNNING);
}

/* gp, which m runs, parks, and whoever was made ready last is next. The context to go on at; NULL:
 * nothing was done. */
INLINE void *straight_to_slot(M *m, G *gp, Lock *l, int reason) {
    P *p = m->p;
    if (unlikely(p == NULL)) return NULL;
    uintptr_t against = obstacles(m, p) | (m->locks ^ 1) | gp->odd | load_rlx(&trace_on);
    G *next = load_rlx(&p->runnext);
    if (unlikely(against != 0) || next == NULL) return NULL;
    void *sp = next->sp;
    if (unlikely(load_rlx(&next->home) != NULL || sp == NULL) || unlikely(!runnext_take(p, next)))
        return NULL;
    gp->reason = (uint8_t)reason;
    gp->since = coarse_now();
    PROBE2(block, gp->id, reason);
    store_rlx(&gp->status, G_WAITING); /* published by the unlock */
    m->unlock = l;
    gp->err = *m->errno_at;
    now_runs(m, p, next);
    PROBE1(start, next->id);
    return sp;
}
/* As park(m, l, reason). */
INLINE M *park_straight(M *m, Lock *l, int reason) {
    G *gp = m->curg;
    void *next = straight_to_slot(m, gp, l, reason);
    if (unlikely(next == NULL)) next = park_begin(m, l, reason);
    return likely(next != NULL) ? switch_from(m, gp, next) : m;
}

/* Behind an exchange of the slot: who was in it goes to the tail, and a searcher is woken. The
 * exchange was followed by the fence of the submit side (runq.h, wake.c). */
void ready_overflow(M *m, G *gp); /* sched.c: the ring is full */
INLINE void slot_taken(M *m, P *p, G *kicked) {
    if (kicked != NULL && unlikely(!runq_push(p, kicked))) ready_overflow(m, kicked);
    if (likely(load_rlx(&sched.npidle) == 0) || load_rlx(&sched.spinning) != 0) return;
    /* else the monitor looks after it (slotwatch.c) */
    if (kicked != NULL || !watched(p)) wakep(m);
}

void ready_rest(M *m, G *kicked); /* sched.c: the same, not inline */
/* As ready(m, gp). */
INLINE void ready_straight(M *m, G *gp) {
    P *p = m->p;
    if (unlikely(p == NULL || ((gp->flags & GF_THREAD) | load_rlx(&trace_on)) != 0)) {
        ready(m, gp);
        return;
    }
    check(load_rlx(&gp->status) == G_WAITING);
    PROBE1(ready, gp->id);
    store_rlx(&gp->status, G_RUNNABLE);
    G *kicked = runnext_swap(p, gp);
    if (unlikely(((uintptr_t)kicked | (load_rlx(&sched.npidle) & ~load_rlx(&p->watch))) != 0))
        ready_rest(m, kicked);
}

#endif
