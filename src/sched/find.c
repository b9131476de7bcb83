/*
 * Finding the next goroutine, on g0 with a P: schedule()'s order, in named phases.
 *
 *   0  a stop of the world wanted: the P stops
 *   1  due timers of this P; what has this thread as its home (preferred.c), in turns with 2 to 4
 *   2  every 61st round, and after a slice has ended: the global queue first
 *   3  the LIFO slot, the ring
 *   4  a batch of the global queue
 *   5  half the queue of a P that stands still; the network, without waiting
 *   6  stealing: four rounds over the others in random order; timers and slots in the last
 *   7  give up: the P goes idle, then everything is looked at once more (wake.c)
 *   8  one thread waits in the poller until the next timer, the others in the pool
 *
 * The order of 2 to 4 is pick.h's, with two additions. A goroutine whose timer came due in the
 * slice that ended comes before the global queue, once, or a sleeper beside CPU-bound goroutines
 * would wait for one more slice; so does a guest of this thread. Beside short sleepers no slice
 * ends, since each of them begins another: when a timer has run and the global queue has had no
 * turn for the length of a slice, the slice counts as ended.
 */
#include "sched/globalq.h"
#include "sched/schedule.h"
#include "sched/netpoll.h"
#include "sched/pick.h"
#include "sched/runq.h"
#include "base/san.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "sched/preferred.h"
#include "sched/sysmon.h"
#include "sched/trace.h"
#include "sched/wake.h"
#include "sched/slotwatch.h"
#include "sched/stopworld.h"

int64_t run_timers(M *m, TimerHeap *h, bool *ran) {
    if (load_acq(&h->first) == GORT_FOREVER) return 0;
    int64_t now = os_now();
    store_rlx(&sched.coarse, now);
    timer_fn *fn;
    void *arg;
    uint32_t seq;
    while (timer_take(h, now, &fn, &arg, &seq)) {
        trace_timer(m);
        fn(m, arg, seq);
        if (ran) *ran = true;
    }
    return now;
}

bool work_waits(P *p) {
    M *m = load_rlx(&p->m);
    if (global_count() != 0 || !runq_empty(p) || (m && soft_waits(m))) return true;
    int64_t first = load_acq(&p->timers.first);
    return first != GORT_FOREVER && first <= os_now();
}

static G *from_global(P *p, uint32_t max) {
    if (global_count() == 0) return NULL;
    lock(&sched.lock, RANK_SCHED);
    G *gp = global_get_locked(p, max);
    unlock(&sched.lock);
    return gp;
}

/* The slice has ended: the slot goes behind the ring, or a pair there would keep it out. */
static void slot_to_ring(P *p) {
    G *gp = load_rlx(&p->runnext);
    if (gp == NULL || load_rlx(&p->tail) - load_rlx(&p->head) >= RING) return;
    if (runnext_take(p, gp)) runq_push(p, gp);
}

/* A slice has ended: those in the ring are before those in the global queue, which join the line
 * behind them. False: there is nothing to join, or no room, or guests wait for the thread of the
 * first, which is at the head to make haste (preferred.c). */
static bool global_joins(P *p) {
    if (global_count() == 0) return false;
    lock(&sched.lock, RANK_SCHED);
    bool joined = !soft_hurries_locked(sched.global.head) && global_join_locked(p);
    unlock(&sched.lock);
    return joined;
}

/* TURN_GLOBAL, TURN_SLEEPER or a 61st round: the G before the slot and the ring, or NULL. */
static G *before_own(P *p, bool timer_ran) {
    bool over = p->turn != TURN_OWN, ring = !runq_empty(p);
    if (timer_ran && p->turn != TURN_SLEEPER && load_rlx(&p->runnext) != NULL) {
        p->turn = TURN_SLEEPER; /* the slot counts as no round, so a 61st one stays due */
        return NULL;
    }
    p->turn = TURN_OWN;
    if (over) p->global_at = load_rlx(&sched.coarse);
    if (over && !timer_ran) slot_to_ring(p);
    bool joined = over && ring && global_joins(p);
    G *gp = joined ? runq_pop(p) : from_global(p, over ? 0 : 1);
    if (gp == NULL) return NULL;
    p->rounds++;
    p->ring_next = ring && !joined;
    return gp;
}

/* Phases 2 to 4. Valgrind runs one thread at a time for a fixed number of steps: a loop of yields
 * may always stop under sched.lock. So others are let in now and then while it is free. */
static G *from_queues(M *m, P *p, bool timer_ran) {
    bool due = global_due(p), inherits = !timer_ran;
    if (due && valgrind_runs()) os_yield();
    G *gp = NULL;
    if (p->turn != TURN_OWN && p->ring_next && !due && !runq_empty(p)) {
        p->turn = TURN_OWN;
        p->ring_next = inherits = false;
        if (!timer_ran) slot_to_ring(p);
    } else if (p->turn != TURN_OWN || due) {
        gp = before_own(p, timer_ran);
    }
    if (gp) return gp;
    if ((gp = slot_take(p)) != NULL) {
        m->inherit = inherits && p->turn == TURN_OWN;
        return gp;
    }
    gp = runq_pop(p);
    if (gp) p->ring_next = false;
    else gp = from_global(p, 0);
    if (gp) p->rounds++;
    return gp;
}

/* The list's Gs have been claimed by the poller; they still count as waiting there. */
static G *take_polled(M *m, GList *list) {
    uint32_t n = list->count;
    if (n == 0) return NULL;
    count(m, netpoll_wakeups, n);
    trace_poll(m, n);
    G *gp = glist_pop(list);
    trace_ready(m, gp);
    store_rlx(&gp->status, G_RUNNABLE);
    if (list->head) ready_list(m, list);
    sub_seq(&sched.poll_waiters, n); /* only now: the deadlock detector must not see a gap */
    return gp;
}

static void note_theft(M *m, P *p, P *victim, uint32_t moved) {
    bump(&p->n.steals, 1);
    bump(&p->n.stolen, moved);
    trace_steal(m, victim, moved);
}

/* A busy server finds events at every look at the network and would never come to steal, while the
 * Gs of a P whose thread the kernel has put aside wait for milliseconds. So before the network, one
 * other P is looked at; if it has not switched since our last look, half its queue is ours. */
static G *from_stuck(M *m, P *p) {
    uint32_t n = load_rlx(&sched.procs), moved;
    if (n == 1) return NULL;
    P *victim = p->watched;
    G *gp = NULL;
    if (victim && load_rlx(&victim->status) == P_RUNNING &&
        load_rlx(&victim->schedtick) == p->watched_tick && !runq_empty(victim) &&
        (gp = runq_steal(p, victim, false, &moved)) != NULL)
        note_theft(m, p, victim, moved);
    p->watched = victim = sched.ps[n == 2 ? 1 - p->id : random_next(&p->rng) % n];
    p->watched_tick = load_rlx(&victim->schedtick);
    if (victim == p) p->watched = NULL;
    return gp;
}

static G *from_network(M *m) {
    int64_t last = load_rlx(&sched.polled_at), now = coarse_now();
    if (load_rlx(&sched.poll_waiters) == 0 || last == 0) return NULL;
    G *gp = from_stuck(m, m->p);
    if (gp) return gp;
    /* For the monitor, which looks for us if nobody does for 10 ms, and on another CPU: once per
     * reading of the coarse clock. By CAS, since 0 says that a thread sleeps in there. */
    if (unlikely(now > last)) cas_seq(&sched.polled_at, &last, now);
    GList list = {0};
    netpoll(0, &list);
    return take_polled(m, &list);
}

static uint32_t gcd(uint32_t a, uint32_t b) {
    while (b) {
        uint32_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* One visit. In the last round its timers run too; what they make ready is ours. */
static G *visit(M *m, P *p, P *victim, bool last) {
    if (last && victim != p) {
        bool ran = false;
        int64_t first = load_acq(&victim->timers.first);
        if (first != GORT_FOREVER && first <= os_now()) run_timers(m, &victim->timers, &ran);
        if (ran) {
            G *gp = slot_take(p);
            if (gp || (gp = runq_pop(p)) != NULL) return gp;
        }
    }
    if (victim == p || load_rlx(&victim->status) == P_IDLE) return NULL;
    uint32_t moved;
    G *gp = runq_steal(p, victim, last && !watched(victim), &moved);
    if (gp) note_theft(m, p, victim, moved);
    return gp;
}

static G *steal(M *m, P *p) {
    uint32_t n = load_rlx(&sched.procs);
    if (n == 1) return NULL;
    for (int round = 0; round < 4; round++) {
        uint64_t r = random_next(&p->rng);
        uint32_t at = (uint32_t)(r % n), step = (uint32_t)((r >> 32) % n) + 1;
        while (gcd(step, n) != 1) step = step % n + 1;
        for (uint32_t i = 0; i < n; i++, at = (at + step) % n) {
            if (load_rlx(&sched.stop_waiting)) return NULL;
            G *gp = visit(m, p, sched.ps[at], round == 3);
            if (gp) return gp;
        }
    }
    return NULL;
}

static void become_searcher(M *m) {
    m->spinning = true;
    add_seq(&sched.spinning, 1);
}

/* It has found something: if it was the last searcher, the next one is woken first. */
static void stop_searching(M *m) {
    if (!m->spinning) return;
    m->spinning = false;
    uint32_t left = sub_seq(&sched.spinning, 1);
    fence_after_rmw(); /* pairs with give_up: it sees what was left to us, or we see its idle P */
    if (left == 0 && load_rlx(&sched.npidle) != 0) wakep(m);
}

/* True: m has a P again and searches on. */
static bool look_again(M *m) {
    if (!work_anywhere()) return false;
    P *p = idle_p_take(NULL);
    if (p == NULL) return false; /* all Ps are busy: theirs to find */
    m_acquire_p(m, p);
    become_searcher(m);
    return true;
}

/* A crowd of timers is served in batches: one wake-up of the thread costs as much as ten timers. */
#define CROWD 1000
#define CROWD_SLACK (200 * GORT_US)

static int64_t poll_deadline(void) {
    int64_t first = timers_first();
    if (first == GORT_FOREVER) return first;
    uint32_t armed = 0;
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++)
        armed += load_rlx(&sched.ps[i]->timers.count);
    return armed > CROWD ? time_after(first, CROWD_SLACK) : first;
}

/* Phase 8. True: m has a P again; *gp may be what the network made ready. */
static bool wait_in_poller(M *m, G **gp) {
    int64_t until = poll_deadline();
    if (until == GORT_FOREVER && load_rlx(&sched.poll_waiters) == 0) return false;
    if (xchg_seq(&sched.polled_at, 0) == 0) {
        /* A thread waits there already, perhaps for longer. */
        if (until < load_rlx(&sched.poll_until)) netpoll_break();
        return false;
    }
    store_rlx(&sched.poll_until, until);
    store_rlx(&m->in_poll, 1);
    fence_full(); /* pairs with wake_for_timer: it sees poll_until, or we see its timer; likewise */
                  /* preferred.c: it sees in_poll, or we see our guests */
    int64_t sooner = poll_deadline();
    if (sooner < until) store_rlx(&sched.poll_until, until = sooner);
    GList list = {0};
    if (!work_anywhere() && !soft_waits(m) && load_rlx(&sched.running)) netpoll(until, &list);
    store_rlx(&m->in_poll, 0);
    int64_t now = os_now();
    store_rlx(&sched.coarse, now);
    store_rlx(&sched.poll_until, 0);
    store_seq(&sched.polled_at, now);
    P *p = load_rlx(&sched.stop_waiting) ? NULL : idle_p_take(NULL);
    if (p == NULL) {
        uint32_t n = list.count;
        if (n) {
            count(m, netpoll_wakeups, n);
            ready_list(m, &list);
            sysmon_uncount(&sched.poll_waiters, n); /* they may have run, and blocked, meanwhile */
        }
        return false;
    }
    m_acquire_p(m, p);
    *gp = take_polled(m, &list);
    if (*gp == NULL) become_searcher(m); /* woken for a timer, or by a thread */
    return true;
}

/* Phase 7. True: m has a P again, or *gp. */
static bool give_up(M *m, G **gp) {
    P *p = m->p;
    lock(&sched.lock, RANK_SCHED);
    if (load_rlx(&sched.stop_waiting) || soft_waits(m)) {
        unlock(&sched.lock);
        return true;
    }
    if ((*gp = global_get_locked(p, 0)) != NULL) {
        unlock(&sched.lock);
        p->rounds++;
        return true;
    }
    m_release_p(m);
    idle_p_put_locked(p);
    if (m->spinning) store_rlx(&sched.vain, sched.vain + 1);
    unlock(&sched.lock);
    if (m->spinning) {
        m->spinning = false;
        sub_seq(&sched.spinning, 1);
    }
    fence_full(); /* the give-up side of the pair: P idle, decrement, fence, look at everything */
    if (look_again(m)) return true;
    return wait_in_poller(m, gp);
}

/* Requests and due timers move P.turn (pick.h). True: a timer ran. */
static bool turn_moves(M *m, P *p) {
    bool timer_ran = false;
    uint32_t asked = 0;
    /* before a look at the list: preferred.c */
    if (load_rlx(&p->look)) asked = xchg_seq(&p->look, settings.migrate);
    int64_t now = run_timers(m, &p->timers, &timer_ran);
    bool passed_by = timer_ran && global_count() != 0 && now - p->global_at >= SLICE;
    if (p->turn == TURN_OWN && (asked == LOOK_GLOBAL || passed_by)) p->turn = TURN_GLOBAL;
    return timer_ran;
}

G *find_runnable(M *m) {
    for (;;) {
        P *p = m->p;
        if (unlikely(load_acq(&sched.stop_waiting))) {
            world_stop_here(m);
            return NULL;
        }
        m->inherit = false;
        bool timer_ran = turn_moves(m, p);
        G *gp = NULL;
        if (unlikely(soft_waits(m)) && !m->soft_last) gp = soft_take(m);
        m->soft_last = gp != NULL; /* in turns with the queues */
        /* the guest's turn, and the queues' right after it: its slice is not the slot's */
        if (gp && p->turn == TURN_GLOBAL) p->turn = TURN_SLEEPER;
        if (gp == NULL) gp = unlikely(sim_on) ? sim_pick(m) : from_queues(m, p, timer_ran);
        if (gp == NULL && unlikely(soft_waits(m))) gp = soft_take(m);
        if (gp == NULL) gp = from_network(m);
        if (unlikely(sim_on) && gp == NULL && sim_idle(m)) continue;
        if (gp == NULL) {
            if (m->spinning ||
                2 * load_rlx(&sched.spinning) < load_rlx(&sched.procs) - load_rlx(&sched.npidle)) {
                if (!m->spinning) become_searcher(m);
                gp = steal(m, p);
            }
            if (gp == NULL) {
                if (!give_up(m, &gp)) return NULL;
                if (gp == NULL) continue;
            }
        }
        stop_searching(m);
        return gp;
    }
}
