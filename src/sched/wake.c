/*
 * Who is awake.
 *
 * Ps without work are on an idle list, Ms without a P in a pool. A thread that looks for work
 * without having any yet is a *searcher* (Go: spinning). The aim: while there is work, a thread
 * comes for it, and without work no thread burns the CPU.
 *
 *   submit                                  give up (find.c)
 *   1  publish the work (queue, slot)       1  the P is idle (npidle++); sched.spinning--
 *   2  full fence                           2  full fence
 *   3  read npidle, sched.spinning:         3  look at everything again: all local queues, the
 *      a P is idle and nobody searches →       global one, timers, poller; work found → take a P
 *      wake one (wakep)                        and become a searcher again
 *
 * It is a Dekker pair: either the submitter sees an idle P and no searcher, and wakes one, or the
 * thread that gives up sees the work. A thread that has not searched, since enough others did, has
 * to look as well (Go leaves that out): the last searcher may have found work while this P was not
 * yet idle, and so woken no other; what it runs may then submit all it has to submit before the P
 * is idle, and wake no thread either. Release and acquire are not enough, since each side stores
 * first and loads second. Where the submitter published by an exchange of the LIFO slot, that
 * instruction is the fence on x86-64; elsewhere an exchange is none (atomic.h), and one follows it.
 * The same goes for the last searcher that finds something: it decrements spinning and then reads
 * npidle (find.c), since work may have been left to it while it was still counted.
 *
 * A goroutine in the slot of a P that the monitor watches needs no searcher (slotwatch.c).
 *
 * A searcher that finds work and was the last one wakes the next before it runs it (find.c), so
 * that a burst unparks threads one after the other. Searchers never outnumber half the busy Ps.
 *
 * A P that needs a thread gets, in this order: an M from the pool; the home of the G that is next
 * in any case (bound.c); a new thread from the maker. Until that exists the P is on the maker's
 * list, and any M that becomes idle takes it from there.
 *
 * A G whose home waits is never taken out of its turn, though its thread is at hand: the M that
 * sent it home a moment ago may still be on its way to the pool, so with one P a locked G that
 * yields in a loop would find the pool empty every time, and be its own successor for ever. But the
 * maker may itself wait, in malloc, for a lock whose holder was preempted and waits in its handler;
 * or there is no thread to be had at all. So the monitor comes by: a P that has been on the list
 * for PENDING_LATE goes to the first G whose home waits (give_late_p).
 *
 * While a P is idle, one thread looks out for work, timers and the network. A thread that finds
 * nothing to do sees to it itself (find.c, phases 7 and 8). A P may also become idle because its
 * thread is lost to it: a locked G waits, a call blocks, the monitor took it. Then the thread that
 * hands it off looks at everything, as in giving up, and calls a searcher, which waits in the
 * poller if it finds nothing (look_out). The pairs are those of submit and give up, with a waiter
 * of the poller as what was submitted: a searcher that we still see counted reads poll_waiters
 * after its decrement; a thread that has left the poller to others has put its P on the idle list
 * before it read poll_waiters, and we read polled_at after that.
 */
#include "sched/wake.h"
#include "sched/globalq.h"
#include "sched/bound.h"
#include "sched/threadmaker.h"
#include "sched/netpoll.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "sched/preferred.h"
#include "sched/sysmon.h"
#include "sched/slotwatch.h"
#include "sched/stopworld.h"

void idle_p_put_locked(P *p) {
    check(load_rlx(&p->m) == NULL);
    store_rlx(&p->status, P_IDLE);
    p->link = sched.idle_ps;
    sched.idle_ps = p;
    store_rel(&sched.npidle, sched.npidle + 1);
}

/* *at, a link of the list; NULL: its end. */
static P *take_idle_locked(P **at) {
    P *p = *at;
    if (p == NULL) return NULL;
    *at = p->link;
    store_rel(&sched.npidle, sched.npidle - 1);
    if (unlikely(load_rlx(&sysmon_sleeps) == 1)) sysmon_wake_soon();
    return p;
}

P *idle_p_get_locked(void) { return take_idle_locked(&sched.idle_ps); }

P *idle_p_take(P *wanted) {
    if (load_rlx(&sched.npidle) == 0) return NULL;
    lock(&sched.lock, RANK_SCHED);
    P **at = &sched.idle_ps;
    while (wanted && *at && *at != wanted) at = &(*at)->link;
    P *p = take_idle_locked(*at ? at : &sched.idle_ps);
    unlock(&sched.lock);
    return p;
}

void m_acquire_p(M *m, P *p) {
    check(m->p == NULL && load_rlx(&p->m) == NULL);
    m->p = p;
    store_rlx(&p->m, m);
    store_rel(&p->status, P_RUNNING);
    if (unlikely(soft_waits(m))) store_rlx(&p->look, LOOK_HERE);
    if (unlikely(sim_on)) sim_adopt(m);
}

P *m_release_p(M *m) {
    P *p = m->p;
    m->p = NULL;
    store_rlx(&p->m, NULL);
    return p;
}

void m_wake_with(M *n, P *p, G *gp) {
    check(!n->pooled);
    n->nextp = p;
    n->nextg = gp;
    note_wake(&n->note); /* release: n sees both */
}

static M *take_pooled_locked(M **at) { /* likewise */
    M *n = *at;
    if (n == NULL) return NULL;
    *at = n->link;
    n->pooled = false;
    store_rlx(&sched.idle_m_count, sched.idle_m_count - 1);
    return n;
}

M *idle_m_get_locked(void) { return take_pooled_locked(&sched.idle_ms); }

bool idle_m_remove_locked(M *m) {
    M **at = &sched.idle_ms;
    while (*at && *at != m) at = &(*at)->link;
    return take_pooled_locked(at) != NULL;
}

#define IDLE_THREAD_LIFE (20 * GORT_SEC)

void m_stop(M *m) {
    check(m->p == NULL && !m->spinning);
    lock(&sched.lock, RANK_SCHED);
    bool spinning = false;
    P *p = sched.running ? maker_take_pending_locked(&spinning) : NULL;
    if (p) { /* a P without a thread: no need to wait for the maker */
        unlock(&sched.lock);
        m->spinning = spinning;
        m_acquire_p(m, p);
        return;
    }
    if (!sched.running) { /* the runtime ends: nobody would wake this one any more */
        unlock(&sched.lock);
        m->dying = true;
        return;
    }
    if (soft_waits(m)) { /* a goroutine has come for this thread (preferred.c) */
        p = load_rlx(&sched.stop_waiting) ? NULL : idle_p_get_locked();
        if (p) {
            unlock(&sched.lock);
            m_acquire_p(m, p);
            return;
        }
        soft_requeue_locked(m);
    }
    check(!m->pooled);
    m->pooled = true;
    m->link = sched.idle_ms;
    sched.idle_ms = m;
    store_rlx(&sched.idle_m_count, sched.idle_m_count + 1);
    unlock(&sched.lock);
    while (!note_sleep_until(&m->note, time_after(os_now(), IDLE_THREAD_LIFE))) {
        lock(&sched.lock, RANK_SCHED); /* idle for long: let the thread go, but keep a few */
        bool gone = sched.idle_m_count > 2 && m->homed == m->unhomed && idle_m_remove_locked(m);
        unlock(&sched.lock);
        if (!gone) continue;
        m->dying = true;
        return;
    }
    if (m->nextp) {
        P *next = m->nextp;
        m->nextp = NULL;
        m_acquire_p(m, next);
    }
}

/* gp goes on with p, at its home. p was to search: then the next one searches. */
static void send_home(M *m, P *p, G *gp, bool spinning) {
    m_wake_with(load_rlx(&gp->home), p, gp);
    if (spinning && sub_seq(&sched.spinning, 1) == 0) wakep(m);
}

void give_p(M *m, P *p, bool spinning) {
    lock(&sched.lock, RANK_SCHED);
    M *n = idle_m_get_locked();
    if (n) {
        if (sched.idle_m_count < SPARES) maker_want_spare_locked();
        unlock(&sched.lock);
        n->spinning = spinning;
        m_wake_with(n, p, NULL);
        return;
    }
    G *gp = home_is_next_locked(p) ? home_take_waiting_locked() : NULL;
    if (gp == NULL) maker_pend_locked(p, spinning);
    unlock(&sched.lock);
    if (gp) send_home(m, p, gp, spinning);
}

/* One that waits for its home, wherever a P without a thread leaves it. */
static G *homed_anywhere_locked(void) {
    G *gp = NULL;
    for (P *p = maker_pending_locked(); p && gp == NULL; p = p->link)
        gp = home_take_queued_locked(p);
    return gp ? gp : home_take_any_locked();
}

#define PENDING_LATE (2 * GORT_MS)

/* The monitor: the P that has waited for the maker longest. */
void give_late_p(M *m, int64_t now) {
    bool spinning = false;
    lock(&sched.lock, RANK_SCHED);
    P *p = load_rlx(&sched.stop_waiting) ? NULL : maker_pending_locked();
    if (p && now - p->pended_at < PENDING_LATE) p = NULL;
    G *gp = p ? homed_anywhere_locked() : NULL;
    if (gp) p = maker_take_pending_locked(&spinning);
    unlock(&sched.lock);
    if (gp == NULL) return;
    bump(&p->late, 1);
    send_home(m, p, gp, spinning);
}

void wakep(M *m) {
    uint32_t none = 0;
    if (load_rlx(&sched.npidle) == 0) return;
    if (load_rlx(&sched.spinning) != 0 || !cas_seq(&sched.spinning, &none, 1)) return;
    lock(&sched.lock, RANK_SCHED);
    P *p = load_rlx(&sched.stop_waiting) ? NULL : idle_p_get_locked();
    /* Withdraw the count under the lock. Else a P could become idle while we are counted: a
     * submitter leaves the waking to us, and the M that gave the P up has looked already. */
    if (p == NULL) sub_seq(&sched.spinning, 1);
    unlock(&sched.lock);
    if (p) give_p(m, p, true);
}

void wake_after_submit(M *m) {
    if (runq_alone() && m && m->p) return; /* the only P is ours */
    fence_full();
    if (load_rlx(&sched.npidle) != 0 && load_rlx(&sched.spinning) == 0) wakep(m);
}

bool work_anywhere(void) {
    if (global_count() != 0) return true;
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++)
        if (!watch_nothing_in(sched.ps[i])) return true;
    int64_t first = timers_first();
    return first != GORT_FOREVER && first <= os_now();
}

/* A P has become idle, and its thread does not come by phases 7 and 8 of find.c. Only the first
 * idle P can have been missed: by a submitter that saw none. */
static void look_out(M *m, bool first_idle) {
    fence_full(); /* the P is idle; pairs with the one of submitting, and of giving up */
    if (first_idle && load_rlx(&sched.spinning) == 0 && work_anywhere()) {
        wakep(m);
        return;
    }
    int64_t first = timers_first();
    if (first != GORT_FOREVER) wake_for_timer(m, first);
    else if (load_rlx(&sched.polled_at) != 0 && load_rlx(&sched.poll_waiters) != 0) wakep(m);
}

/* p has no thread any more. Is there anything for it to do? Otherwise it is idle. */
void handoff_p(M *m, P *p) {
    bool busy = !runq_empty(p) || global_count() != 0 || load_acq(&p->timers.first) <= coarse_now();
    if (busy && !load_rlx(&sched.stop_waiting)) {
        give_p(m, p, false);
        return;
    }
    /* No thread searches and no P is idle: this one's next thread looks out for work and events. */
    uint32_t none = 0;
    if (load_rlx(&sched.spinning) + load_rlx(&sched.npidle) == 0 &&
        !load_rlx(&sched.stop_waiting) && cas_seq(&sched.spinning, &none, 1)) {
        give_p(m, p, true);
        return;
    }
    lock(&sched.lock, RANK_SCHED);
    if (load_rlx(&sched.stop_waiting)) {
        world_p_stopped_locked(p);
        unlock(&sched.lock);
        return;
    }
    if (global_count() != 0) {
        unlock(&sched.lock);
        give_p(m, p, false);
        return;
    }
    idle_p_put_locked(p);
    bool first_idle = sched.npidle == 1;
    unlock(&sched.lock);
    look_out(m, first_idle);
}

/* A timer became the earliest of its heap. If a thread blocks in the poller for longer, wake it. If
 * none is there and a P is idle, call one. If all Ps are busy, they see the timer when they next
 * schedule, and the monitor looks after them. */
void wake_for_timer(M *m, int64_t when) {
    fence_full(); /* pairs with the one in find.c between publishing poll_until and reading first */
    if (load_rlx(&sched.polled_at) == 0) {
        int64_t until = load_rlx(&sched.poll_until);
        if (until == 0 || when < until) netpoll_break();
    } else if (load_rlx(&sched.npidle) != 0 && (m->p == NULL || m->curg != NULL)) {
        wakep(m); /* it finds nothing and waits in the poller; an M on g0 will do so itself */
    }
    if (unlikely(load_rlx(&sysmon_sleeps) == 1)) sysmon_wake_soon();
}
