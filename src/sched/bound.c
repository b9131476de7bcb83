/*
 * Goroutines with a home: gp->home is the only M that may resume gp (a soft home is only a
 * preference: preferred.c). There are two kinds:
 *
 *   preempted   the thread waits in its signal handler with the goroutine's registers (preempt.c);
 *               the home lasts until the goroutine goes on.
 *   locked      gort_lock_thread: the thread runs nothing else (m->lockedg) until unlocked.
 *
 * Such a G waits in the queues like any other. An M that picks it cannot run it: the M gives its P,
 * with the G, to the home, which waits on its note, and goes to the pool. Nobody retakes a P in
 * flight: the receiver's `locks` is at least 1.
 *
 * Where no thread is free and none can be made, only these can run. A goroutine that was preempted
 * inside malloc may hold the very lock that the maker of threads waits for. So a P in need of a
 * thread goes to one of them, each in its turn: first those in the P's queue, where no others join
 * them meanwhile, then the global queue, whose tail is for those preempted now.
 */
#include "sched/bound.h"
#include "sched/body.h"
#include "sched/globalq.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/preferred.h"
#include "sched/wake.h"

bool home_is_next_locked(P *p) {
    G *head = sched.global.head;
    return head && home_waits(head) && sched.spilled.count == 0 && runq_empty(p) &&
           load_acq(&p->timers.first) > os_now();
}

G *home_take_waiting_locked(void) {
    G *before = NULL;
    for (G *gp = sched.global.head; gp; before = gp, gp = gp->schedlink) {
        if (!home_waits(gp)) continue;
        glist_remove(&sched.global, before, gp);
        add_rlx(&sched.other.global_gets, 1);
        return gp;
    }
    return NULL;
}

G *home_take_queued_locked(P *p) {
    G *next = load_acq(&p->runnext), *found = NULL;
    if (next && home_waits(next) && runnext_take(p, next)) return next;
    for (uint32_t n = load_rlx(&p->tail) - load_rlx(&p->head); n > 0; n--) {
        G *gp = runq_pop(p);
        if (gp == NULL) break;
        if (found == NULL && home_waits(gp)) found = gp;
        else runq_push(p, gp); /* there is room: only thieves were here meanwhile */
    }
    return found;
}

G *home_take_any_locked(void) {
    global_flatten_locked();
    return home_take_waiting_locked();
}

void home_send(M *m, G *gp) {
    M *home = load_rlx(&gp->home);
    P *p = m_release_p(m);
    /* The slice goes on at the home, which waits on its note. Otherwise two Gs that hand something
     * back and forth, one of them locked, would begin a new slice each time. */
    home->inherit = m->inherit;
    m->inherit = false;
    m_wake_with(home, p, gp);
}

/* A sender may bring the G with another P before this M has given up its own: so m reads nextp and
 * nextg only after the wake-up that came with them. */
G *home_wait(M *m) {
    if (m->p) handoff_p(m, m_release_p(m));
    note_sleep(&m->note);
    P *p = m->nextp;
    G *gp = m->nextg;
    m->nextp = NULL;
    m->nextg = NULL;
    if (p == NULL) return NULL; /* the runtime ends */
    m_acquire_p(m, p);
    return gp;
}

EXPORT void gort_lock_thread(void) {
    if (in_forked_child()) return;
    M *m = enter();
    G *gp = m->curg;
    if (unlikely(gp->lock_depth == UINT16_MAX)) fatal("gort_lock_thread nested 65536 times");
    if (!(gp->flags & GF_THREAD) && gp->lock_depth++ == 0) {
        soft_harden(m, gp);
        soft_lock(m, gp);
        m->detour = gp;
        store_rlx(&gp->home, m);
    }
    leave(m);
}

EXPORT void gort_unlock_thread(void) {
    if (in_forked_child()) return;
    M *m = enter();
    G *gp = m->curg;
    if (!(gp->flags & GF_THREAD) && gp->lock_depth > 0 && --gp->lock_depth == 0) {
        store_rlx(&m->lockedg, NULL);
        if (has_body(gp)) gp->flags |= GF_SOFT;
        else m->detour = NULL;
        store_rlx(&gp->home, home_anywhere(gp));
    }
    leave(m);
}

/* procPin: a section that the program holds open. */
EXPORT int gort_pin(void) {
    if (in_forked_child()) return -ENOTCONN;
    M *m = enter();
    if (m->plain || !load_rlx(&sched.running)) {
        leave(m);
        return -ENOTCONN;
    }
    if (unlikely(in_blocking_call(m))) fatal("gort_pin inside a blocking call");
    m->pins++;
    return (int)m->p->id;
}

EXPORT void gort_unpin(void) {
    if (in_forked_child()) return;
    M *m = getm();
    /* a stopped world counts as one pin */
    if (m == NULL || m->plain || m->pins == m->world) fatal("gort_unpin without gort_pin");
    m->pins--;
    leave(m);
}
