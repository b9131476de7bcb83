/*
 * What may end a wait beside its waker and its deadline: a context in use (ctx.c).
 *
 * A goroutine, or a plain thread, that uses a context has an Ender. Waits without a limit become
 * waits with a deadline that never comes (wait_limit), so all waits that may be ended are timed
 * ones, claimed by a ticket, and park_timed is the only place that knows of enders.
 *
 * Ender.wait says which wait may be ended, as a ticket and a phase:
 *
 *   ARMING   the owner is about to park: only a mark may be left (HIT)
 *   PARKED   its stack is left: the party that claims the ticket readies the owner
 *   HIT      the cause came before that: the commit of the park ends the wait at once
 *
 * The owner stores ARMING and then reads the cause; the canceller sets the cause and then reads
 * Ender.wait, both in order (seq): one of the two sees the other. An old ticket claims nothing, so
 * the word stays as it is after the wait.
 */
#ifndef ENDER_H
#define ENDER_H

#include "mem/stack.h"
#include "sched/sched.h"

enum { ENDER_IDLE, ENDER_ARMING, ENDER_PARKED, ENDER_HIT };

/* gp's, if a context is in use. In a section of gp's thread. */
INLINE Ender *ender_of(G *gp) {
    if (likely(!(gp->odd & ODD_USES))) return NULL;
    return gp->flags & GF_THREAD ? &gp->m->ender : &gp->stack->ender;
}

/* The limit of a wait: with a context in use, at least a deadline that never comes. */
INLINE int64_t wait_limit(M *m, int64_t deadline) {
    return unlikely(self(m)->odd & ODD_USES) && deadline == GORT_FOREVER ? NEVER : deadline;
}

/* The same outside of sections. */
INLINE int64_t call_limit(int64_t deadline) {
    if (deadline != GORT_FOREVER) return deadline;
    M *m = enter();
    deadline = wait_limit(m, deadline);
    leave(m);
    return deadline;
}

/* The error that the context in use ends waits with; 0: none, or it is not done. In a section. */
INLINE int use_cause(M *m) {
    Ender *e = ender_of(self(m));
    return unlikely(e != NULL) ? load_acq(e->cause) : 0;
}
/* 0: the wait may begin; else why not. */
NOINLINE int wait_is_over(M *m, int64_t deadline);
INLINE int wait_over(M *m, int64_t deadline) {
    return deadline == GORT_FOREVER ? 0 : wait_is_over(m, deadline);
}

/* The owner is about to park. kept: a timer may let it go on before ender_parked. */
void ender_arm(Ender *e, uint32_t ticket, bool kept);
/* Its stack is left. False: the cause has come, and the caller ends the wait. */
bool ender_parked(Ender *e, uint32_t ticket);
/* The cause of e is set: ends its wait. The caller readies what joins the list. */
void ender_strike(Ender *e, GList *list);

#endif
