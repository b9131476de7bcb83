/*
 * Soft homes: a goroutine inside a hooked libc call (src/hook/) comes back on the thread it left,
 * so that the thread-locals and owner-checked locks of the library around it stay true. Unlike the
 * homes of bound.c the thread does not wait for it: it goes on running others.
 *
 * gp->home with GF_SOFT in gp->flags, set by the goroutine itself (soft_begin). Such a G waits in
 * the queues like any other. An M that picks it (execute) and is not its home puts it on the home's
 * list, m->soft, and makes sure that the home comes for it (soft_send). Where can the home be?
 *
 *   in the pool      taken out of it, in the same hold of sched.lock, and woken with an idle P or,
 *                    where there is none, with the sender's own
 *   with a P         it looks at its list whenever it is on g0 (find.c). P.look asks it to pass by
 *   in the poller    without a P, for as long as nothing happens: woken by netpoll_break().
 *                    in_poll and the list are a Dekker pair (find.c has the other side)
 *   on its way into  m_stop looks at the list under the lock, before it is in the pool: takes an
 *   the pool         idle P, or, all being busy, moves the list to the head of the global queue, to
 *                    be picked by one of those and sent again, now to an M in the pool
 *   in the handler   of a preemption, with a goroutine that waits in the global queue, perhaps
 *                    behind hundreds that compute. The guest lends its turn to that goroutine
 *                    (take_held_locked), which runs for a slice at most; then the home is on g0.
 *                    A goroutine that is preempted while guests wait for its thread goes to the
 *                    head of the queue (preempt.c), and the monitor makes the Ps look there
 *                    (hurry_locked). After ten such slices the monitor gives the home up: the two
 *                    may wait for each other, and a stale thread-local is better than a deadlock
 *   in the kernel    given up likewise after PATIENCE. A thread that only waits for a CPU will come
 *
 * So a G on a list is always seen by its home or by the monitor, which does not sleep deeply while
 * soft_waiting is not 0; and the deadlock detector counts it as runnable.
 *
 * A thread that is locked to a goroutine runs no other: its guests run anywhere (soft_lock).
 *
 * A thread that is a home (homed - unhomed) is not let go for idleness; one that ends all the same
 * is `closed`, and its guests run anywhere. Its record has no other thread before they do (m.c).
 *
 * A preempted G is bound hard to its thread: preempt.c turns GF_SOFT into GF_SOFT_HELD.
 */
#include "sched/preferred.h"
#include "sched/threadstate.h"
#include "sched/netpoll.h"
#include "sched/sched.h"
#include "sched/wake.h"

#define PATIENCE (10 * SLICE)
#define HELD_MOST 10
#define HELD_LONG (50 * PATIENCE) /* in the handler, whatever happens */
#define LOOK_FOR 256              /* so many in the global queue, at most: it is in a lock */

/* A section that does not look for requests as it begins: it might give way to others, and the home
 * must be known before that. It touches no P. A preemption finds the thread in a section, and a
 * handler of the program's that makes a hooked call, too: that call waits in the kernel. Were it
 * let in between the flag and the home it would have a home of its own, end it, and leave a home
 * without the flag: a thread that is said to wait, and stands in the pool. */
static M *begin_blindly(void) {
    M *m = getm();
    m->locks++;
    fence_compiler();
    return m;
}

static void end_section(M *m) { /* leave(), though the P may have been taken */
    fence_compiler();
    store_rel(&m->locks, m->locks - 1);
    fence_compiler();
    if (unlikely(load_rlx(&m->attn) != 0)) leave_slow(m);
}

bool soft_begin(void) {
    M *m = begin_blindly();
    G *gp = m->curg;
    bool first = load_rlx(&gp->home) == NULL;
    if (first) {
        gp->flags |= GF_SOFT;
        store_rlx(&m->homed, m->homed + 1);
        store_rlx(&gp->home, m);
    }
    fence_compiler();
    /* without a look: the caller may still use the thread's variables (pthread_once) */
    store_rel(&m->locks, m->locks - 1);
    return first;
}

void soft_end(void) {
    M *m = begin_blindly();
    G *gp = m->curg;
    if (gp->flags & GF_SOFT) { /* else given up meanwhile */
        check(load_rlx(&gp->home) == m);
        gp->flags &= (uint8_t)~GF_SOFT;
        store_rlx(&gp->home, NULL);
        store_rlx(&m->homed, m->homed - 1);
    }
    end_section(m);
}

/* sched.lock, gp in hand: it runs anywhere from here on. */
static void give_up_home_locked(G *gp) {
    M *home = load_rlx(&gp->home);
    store_rlx(&home->unhomed, home->unhomed + 1);
    gp->flags &= (uint8_t)~GF_SOFT;
    store_rlx(&gp->home, NULL);
}

/* sched.lock: a P for home, m's own where none is idle; then the slice goes on (home_send). */
static P *p_for_home_locked(M *m, M *home) {
    P *p = load_rlx(&sched.stop_waiting) ? NULL : idle_p_get_locked();
    if (p) return p;
    p = m_release_p(m);
    home->soft_inherit = m->inherit;
    return p;
}

/* sched.lock: the goroutine that home keeps in the handler, off the global queue; NULL: it is
 * nowhere near its head, or on its way. */
static G *take_held_locked(M *home) {
    if (!home->in_handler) return NULL;
    G *before = NULL, *gp = sched.global.head;
    for (int i = 0; gp && gp != home->curg; i++) {
        if (i == LOOK_FOR) return NULL;
        before = gp;
        gp = gp->schedlink;
    }
    if (gp) glist_remove(&sched.global, before, gp);
    return gp;
}

static void call_home(M *home) {
    P *p = load_rlx(&home->p);
    if (p) store_seq(&p->look, LOOK_HERE); /* its holder passes by g0, at worst for nothing */
    fence_full();                          /* against in_poll, see find.c */
    if (load_rlx(&home->in_poll)) netpoll_break();
}

bool soft_send(M *m, G *gp) {
    M *home = load_rlx(&gp->home);
    lock(&sched.lock, RANK_SCHED);
    if (home->closed || load_rlx(&home->lockedg)) {
        give_up_home_locked(gp);
        unlock(&sched.lock);
        return false;
    }
    gp->since = coarse_now();
    add_seq(&sched.soft_waiting, 1);
    if (home->soft.head == NULL) store_rlx(&home->soft_held, 0);
    glist_push(&home->soft, gp);
    G *held = NULL;
    bool waits = idle_m_remove_locked(home) || (held = take_held_locked(home)) != NULL;
    P *p = waits ? p_for_home_locked(m, home) : NULL;
    unlock(&sched.lock);
    m->inherit = false;
    if (p) m_wake_with(home, p, held);
    else call_home(home);
    return true;
}

G *soft_take(M *m) {
    lock(&sched.lock, RANK_SCHED);
    G *gp = glist_pop(&m->soft);
    m->soft_at = coarse_now();
    store_rlx(&m->soft_held, 0);
    /* else each guest begins a slice, and a pair in the slot goes on with it before the ring */
    m->inherit = m->soft_inherit || load_rlx(&m->p->runnext) != NULL;
    m->soft_inherit = false;
    bool more = m->soft.head != NULL;
    unlock(&sched.lock);
    if (gp == NULL) return NULL;
    sub_seq(&sched.soft_waiting, 1);
    if (more) store_rlx(&m->p->look, LOOK_HERE); /* come by again after this one */
    return gp;
}

void soft_requeue_locked(M *m) {
    uint32_t n = m->soft.count;
    /* it was their turn: one whose home is in some call each time would never run */
    glist_prepend(&sched.global, &m->soft);
    sub_seq(&sched.soft_waiting, n);
}

/* sched.lock: the guests of m may run anywhere. */
static uint32_t give_up_locked(M *m) {
    uint32_t n = 0;
    for (G *gp; (gp = glist_pop(&m->soft)) != NULL; n++) {
        give_up_home_locked(gp);
        glist_push(&sched.global, gp);
    }
    sub_seq(&sched.soft_waiting, n);
    return n;
}

void soft_lock(M *m, G *gp) {
    lock(&sched.lock, RANK_SCHED);
    store_rlx(&m->lockedg, gp); /* soft_send looks at it */
    uint32_t n = give_up_locked(m);
    unlock(&sched.lock);
    if (n) wake_after_submit(m);
}

void soft_close(M *m) {
    lock(&sched.lock, RANK_SCHED);
    m->closed = true;
    uint32_t n = 0;
    if (sched.running && m->epoch == sched.epoch) n = give_up_locked(m);
    else m->soft = (GList){0};
    unlock(&sched.lock);
    if (n) wake_after_submit(m);
}

/* It went on from the handler for that many slices while they waited, and computes still. */
static bool held_too_often(M *home) { return load_rlx(&home->soft_held) >= HELD_MOST; }

/* sched.lock: its guests wait for too long, and not for each other: one that comes for them now and
 * then is not stuck, however long its list. One with a P is asked to pass by once more. */
static bool late_locked(M *home, int64_t now) {
    G *first = home->soft.head;
    if (first == NULL) return false;
    P *p = load_rlx(&home->p);
    int64_t since = first->since > home->soft_at ? first->since : home->soft_at;
    if (p && now - since > SLICE) store_seq(&p->look, LOOK_HERE);
    if (held_too_often(home)) return true;
    return now - since > (home->in_handler ? HELD_LONG : PATIENCE);
}

/* sched.lock, the monitor: a home with guests is in the handler: the Ps look, once in a slice. */
static void hurry_locked(M *home, int64_t now) {
    static int64_t hurried_at;
    G *first = home->soft.head;
    if (first == NULL || !home->in_handler || now - first->since < SLICE ||
        now - hurried_at < SLICE)
        return;
    hurried_at = now;
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++)
        store_seq(&sched.ps[i]->look, LOOK_GLOBAL);
}

/* Ms are never freed: what was found late may be looked at outside of the lock, in /proc. */
static uint32_t find_late(M **late, uint32_t max, int64_t now) {
    uint32_t n = 0;
    lock(&sched.lock, RANK_SCHED);
    for (M *home = load_acq(&sched.all_ms); home && n < max; home = home->all) {
        if (late_locked(home, now)) late[n++] = home;
        else hurry_locked(home, now);
    }
    unlock(&sched.lock);
    return n;
}

void soft_look(M *m, int64_t now) {
    M *late[16];
    uint32_t n = 0;
    if (load_rlx(&sched.soft_waiting) == 0) return;
    for (uint32_t i = find_late(late, count_of(late), now); i > 0; i--) {
        M *home = late[i - 1];
        if (!held_too_often(home) && thread_awake(home)) continue;
        lock(&sched.lock, RANK_SCHED);
        if (late_locked(home, now)) n += give_up_locked(home);
        unlock(&sched.lock);
    }
    if (n) wake_after_submit(m);
}
