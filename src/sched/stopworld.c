/*
 * The world stops when every P but the caller's is in state P_STOPPED.
 *
 *   1  Callers take turns (a queue of their own, first come first served).
 *   2  stop_waiting is set under sched.lock: no idle P is given out any more, and every M that
 *      comes to find.c with a P stops it there.
 *   3  Idle Ps and those on the maker's list are stopped at once.
 *   4  The others are asked by flag and signal, as for preemption. A thread in an announced call,
 *      or asleep in the kernel, loses its P by the silent retake (retake.c).
 *
 * So no other thread is in a section with a P while the world is stopped. But a thread that lost
 * its P by a retake, now or before, is not waited for: nobody knows when it comes back. It then
 * runs the program's code until its next section (docs/DESIGN.md) or, if it computes, until the
 * monitor stops it by signal. Code that must not run meanwhile is pinned (gort_pin): such a thread
 * keeps its P, and is waited for.
 *
 * The program may call libc, printf say, while the world is stopped, so no thread may stand stopped
 * inside libc with a lock. A thread that is asked by signal goes on until it is out (inlibc.c). One
 * that was preempted there before waits in its handler for a P: when all have stopped, the stopper
 * lends its own P to each such thread in turn, until it is out (let_out).
 *
 * The retaker lock keeps the monitor out while Ps are counted.
 */
#include "sched/stopworld.h"
#include "base/print.h"
#include "sched/alloc.h"
#include "mem/compact_stack.h"
#include "sched/g.h"
#include "sched/globalq.h"
#include "sched/inlibc.h"
#include "sched/threadmaker.h"
#include "sched/preempt.h"
#include "sched/retake.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "mem/stack.h"
#include "sched/trace.h"
#include "sched/wake.h"

static struct {
    Lock lock;
    bool busy;     /* lock: the world is being stopped, or stopped */
    GList waiting; /* lock: callers that wait for their turn */
    uint32_t need; /* sched.lock: Ps that have not stopped yet */
    Note note;
} world;

void world_p_stopped_locked(P *p) {
    store_rlx(&p->status, P_STOPPED);
    check(world.need > 0);
    if (--world.need == 0) note_wake(&world.note);
}

void world_stop_here(M *m) {
    if (m->spinning) {
        m->spinning = false;
        sub_seq(&sched.spinning, 1);
    }
    lock(&sched.lock, RANK_SCHED);
    if (load_rlx(&sched.stop_waiting)) world_p_stopped_locked(m_release_p(m));
    unlock(&sched.lock);
}

static M *take_turn(M *m) {
    lock(&world.lock, RANK_WORLD);
    if (!world.busy) {
        world.busy = true;
        unlock(&world.lock);
        return m;
    }
    glist_push(&world.waiting, self(m));
    return park(m, &world.lock, WAIT_STOP_WORLD); /* pass_turn gives this G the turn */
}

static void pass_turn(M *m) {
    lock(&world.lock, RANK_WORLD);
    G *gp = glist_pop(&world.waiting);
    if (gp == NULL) world.busy = false;
    unlock(&world.lock);
    if (gp) ready_tail(m, gp);
}

/* Step 3. */
static void stop_idle_locked(void) {
    P *p;
    bool spinning;
    while ((p = idle_p_get_locked()) != NULL) world_p_stopped_locked(p);
    while ((p = maker_take_pending_locked(&spinning)) != NULL) {
        if (spinning) sub_seq(&sched.spinning, 1);
        world_p_stopped_locked(p);
    }
}

/* m's P, if m is in an announced call, which may compute, or sleeps in the kernel. Else NULL. */
static P *take_from_call(M *m) {
    G *gp = load_rlx(&m->curg);
    uint32_t tick = load_rlx(&m->syscalltick);
    P *p = gp && load_rlx(&gp->status) == G_SYSCALL ? retake_announced(m, tick) : NULL;
    return p ? p : retake_if_asleep(m, true);
}

/* Step 4, repeated until all have stopped. */
static void press(M *m) {
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        P *p = sched.ps[i];
        if (p == m->p || load_rlx(&p->status) == P_STOPPED) continue;
        M *other = load_rlx(&p->m);
        if (other == NULL) continue;
        P *taken = take_from_call(other);
        if (taken) {
            lock(&sched.lock, RANK_SCHED);
            world_p_stopped_locked(taken);
            unlock(&sched.lock);
        } else {
            preempt_m(other);
        }
    }
}

#define PATIENCE GORT_SEC

/* A pinned goroutine keeps its P for as long as it wants: the stopper names it, once. */
static void tell_who_does_not_stop(M *m) {
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        P *p = sched.ps[i];
        M *other = load_rlx(&p->m);
        G *gp = other && other != m && load_rlx(&p->status) != P_STOPPED ? load_rlx(&other->curg)
                                                                         : NULL;
        if (gp == NULL) continue;
        print_fd(2, "gort: the world is to stop and waits for goroutine %lu%s: it %s\n",
                 (unsigned long)load_rlx(&gp->id),
                 load_rlx(&other->pins) ? ", which is pinned" : "",
                 os_thread_state(other->tid) == 'S' ? "sleeps in the kernel" : "computes");
    }
}

/* Until world.need is 0. */
static void await_stopped(M *m) {
    int64_t pause = 50 * GORT_US, began = os_now();
    press(m);
    while (!note_sleep_until(&world.note, time_after(os_now(), pause))) {
        press(m);
        lock(&sched.lock, RANK_SCHED);
        stop_idle_locked();
        unlock(&sched.lock);
        if (pause < 2 * GORT_MS) pause *= 2;
        if (began != GORT_FOREVER && os_now() - began > PATIENCE) {
            began = GORT_FOREVER; /* once */
            tell_who_does_not_stop(m);
        }
    }
}

/* Takes gp, a runnable G that waits in its handler, off whatever queue it is on. */
static bool unqueue_locked(G *gp) {
    if (global_remove_locked(gp)) return true;
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++)
        if (runq_remove(sched.ps[i], gp)) return true;
    return false;
}

/* All have stopped: lends m's P to other, which was preempted inside libc, until it is out. */
static void lend(M *m, M *other) {
    note_clear(&world.note);
    lock(&sched.lock, RANK_SCHED);
    G *gp = other->in_handler ? other->curg : NULL;
    bool found = gp && unqueue_locked(gp);
    if (found) world.need = 1;
    unlock(&sched.lock);
    if (!found) return;
    P *p = m_release_p(m);
    m_wake_with(other, p, gp);
    await_stopped(m);
    m_acquire_p(m, p);
}

static void let_out(M *m) {
    for (M *other = load_acq(&sched.all_ms); other; other = other->all)
        if (other != m && load_acq(&other->alive) && !other->plain && other->epoch == sched.epoch &&
            inlibc_stopped(other))
            lend(m, other);
}

M *world_stop(M *m) {
    m = take_turn(m);
    retaker_lock();
    trace_stw(m, true);
    note_clear(&world.note);
    lock(&sched.lock, RANK_SCHED);
    world.need = load_rlx(&sched.procs) - 1;
    store_seq(&sched.stop_waiting, 1);
    bool waiting = world.need > 0;
    if (waiting) stop_idle_locked();
    unlock(&sched.lock);
    if (waiting) await_stopped(m);
    let_out(m);
    retaker_unlock();
    return m;
}

static void world_start(M *m) {
    P *busy = NULL;
    lock(&sched.lock, RANK_SCHED);
    store_seq(&sched.stop_waiting, 0);
    for (uint32_t i = load_rlx(&sched.procs); i-- > 0;) {
        P *p = sched.ps[i];
        if (p == m->p) continue;
        if (runq_empty(p)) {
            idle_p_put_locked(p);
        } else {
            p->link = busy;
            busy = p;
        }
    }
    unlock(&sched.lock);
    while (busy) {
        P *p = busy;
        busy = p->link;
        give_p(m, p, false);
    }
    trace_stw(m, false);
    /* no fence: submitters queued under sched.lock before this thread took it, and a searcher that
     * is still counted was so before its P stopped */
    wakep(m);
    int64_t first = timers_first(); /* perhaps no thread waits for those of the idle Ps */
    if (first != GORT_FOREVER) wake_for_timer(m, first);
    pass_turn(m);
}

/* The main goroutine of the last runtime ended it with the world stopped. */
void world_reset(void) {
    world.busy = false;
    world.waiting = (GList){0};
}

EXPORT void gort_stop_world(void) {
    if (in_forked_child()) return;
    M *m = enter();
    if (m->plain) fatal("gort_stop_world outside a goroutine");
    const char *why = unfinished(m);
    if (why) fatal("gort_stop_world %s", why);
    m = world_stop(m);
    m->world = true; /* the section stays open: not preempted, and blocking is misuse */
    m->pins++;
}

EXPORT void gort_start_world(void) {
    if (in_forked_child()) return;
    M *m = getm();
    if (m == NULL || m->plain || !m->world) fatal("gort_start_world without gort_stop_world");
    m->world = false;
    m->pins--;
    world_start(m);
    leave(m);
}

/* ---- the number of Ps ------------------------------------------------------------------------ */

static P *p_new(uint32_t id) {
    P *p = os_map(sizeof *p, false);
    if (p == NULL) return NULL;
    p->id = id;
    p->timers.first = GORT_FOREVER;
    if (!timers_prepare(&p->timers)) {
        os_unmap(p, sizeof *p);
        return NULL;
    }
    p->rng = (uint64_t)os_now() * 0x9E3779B97F4A7C15ULL + id * 2 + 1;
    p->status = P_STOPPED;
    return p;
}

/* p goes away: the first P, the global queue and the common lists get what it has. */
static void p_retire(P *p) {
    GList list = {0};
    runq_drain(p, &list);
    if (list.head) global_put_list_head(&list);
    timers_move(&sched.ps[0]->timers, &p->timers);
    g_flush(p);
    stack_flush(p);
    compact_flush(p);
    alloc_flush(p);
    store_rlx(&p->status, P_DEAD);
}

int procs_resize(M *m, uint32_t n) {
    uint32_t old = load_rlx(&sched.procs);
    for (uint32_t i = old; i < n; i++) {
        if (sched.ps[i] == NULL && (sched.ps[i] = p_new(i)) == NULL) return -ENOMEM;
        store_rlx(&sched.ps[i]->status, P_STOPPED);
        store_rlx(&sched.ps[i]->look, settings.migrate);
        store_rlx(&sched.ps[i]->watch, 0);
    }
    store_seq(&sched.procs, n);
    if (m && m->p && m->p->id >= n) { /* m's own P goes away: take the first one */
        m_release_p(m);
        m_acquire_p(m, sched.ps[0]);
    }
    for (uint32_t i = n; i < old; i++) p_retire(sched.ps[i]);
    return 0;
}

/* A plain thread that resizes starts a goroutine to do it, and waits. Its request is listed until
 * that goroutine answers it, or the end of the runtime does (world_answer_requests). */
typedef struct Request {
    struct Request *next;
    int n, result;
    G *gp; /* the thread's pseudo-G */
} Request;

static struct {
    Lock lock; /* RANK_WORLD */
    Request *first;
} requests;

/* Takes r off. False: it has been answered. */
static bool request_remove(Request *r) {
    lock(&requests.lock, RANK_WORLD);
    Request **at = &requests.first;
    while (*at && *at != r) at = &(*at)->next;
    bool found = *at != NULL;
    if (found) *at = r->next;
    unlock(&requests.lock);
    return found;
}

static void resize_for_thread(void *arg) {
    Request *r = arg;
    /* r stays while this goroutine runs: the end answers it only when no goroutine does */
    int result = gort_maxprocs(r->n);
    M *m = enter();
    if (request_remove(r)) {
        r->result = result;
        ready(m, r->gp);
    }
    leave(m);
}

static int maxprocs_from_thread(M *m, int n) {
    Request r = {.n = n, .result = -ENOTCONN, .gp = self(m)};
    lock(&requests.lock, RANK_WORLD);
    r.next = requests.first;
    requests.first = &r;
    unlock(&requests.lock);
    int e = go_start(m, NULL, resize_for_thread, &r, NULL, 0, (uintptr_t)gort_maxprocs + 1);
    if (e == 0 || !request_remove(&r)) m = park(m, NULL, WAIT_STOP_WORLD);
    leave(m);
    return e < 0 ? e : r.result;
}

void world_answer_requests(M *m) {
    for (Request *r; (r = requests.first) != NULL;)
        if (request_remove(r)) ready(m, r->gp);
}

static int change_procs(M *m, int n) {
    m = world_stop(m);
    int old = (int)load_rlx(&sched.procs);
    int r = procs_resize(m, (uint32_t)n);
    world_start(m);
    leave(m);
    return r < 0 ? r : old;
}

void procs_follow(int n) {
    M *m = enter();
    if (load_rlx(&sched.procs_fixed)) leave(m);
    else change_procs(m, n);
}

EXPORT int gort_maxprocs(int n) {
    if (in_forked_child() || !load_rlx(&sched.running)) return -ENOTCONN;
    M *m = enter();
    const char *why = n < 1 || m->plain ? NULL : unfinished(m);
    if (why) fatal("gort_maxprocs %s", why); /* even if n changes nothing */
    int old = (int)load_rlx(&sched.procs);
    if (n > MAX_PROCS) n = MAX_PROCS;
    if (n >= 1) store_rlx(&sched.procs_fixed, 1);
    if (n < 1 || n == old || sim_on) { /* a simulation has one P */
        leave(m);
        return old;
    }
    if (m->plain) return maxprocs_from_thread(m, n); /* only a goroutine can stop the world */
    return change_procs(m, n);
}
