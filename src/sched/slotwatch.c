/*
 * Slots that the monitor watches, so that no searcher is called for them.
 *
 * Two goroutines that hand something back and forth put each other into the slot of their P, and
 * the P takes it within nanoseconds. By the rule of wake.c each submission calls a searcher while a
 * P is idle, in vain: at two Ps that was half the time of a round trip, and a CPU.
 *
 * So a P that switches quickly while searches are in vain is *watched*: a submission to its slot
 * calls nobody, unless it pushed a G out of the slot into the ring, and searchers pass the slot by.
 * In exchange the monitor looks every TICK. If the slot is full and the P has not switched from one
 * look to the next, the monitor ends the watch, begins none for UNWATCHED_TIME, and calls a
 * searcher. So a G in a slot waits at most about a tick longer. The watch also ends if the P
 * becomes slow or idle, or if no P is idle: then nobody would be called anyway.
 *
 * Nothing is lost. There are two Dekker pairs: each side writes, fences, and reads:
 *
 *   submit             the watch ends             searcher gives up
 *   1  the slot        1  watch = 0               1  the P is idle, spinning--
 *   2  full fence      2  full fence              2  full fence
 *   3  watch           3  the slot; spinning      3  watch; the slot where it is 0
 *
 * Submit and end: if the submitter still saw WATCHED, the monitor sees the slot, and calls a
 * searcher. End and giving up: wakep() calls nobody while one searches, but that searcher may have
 * passed the slot by while it was watched. If the monitor still saw it searching, the searcher sees
 * watch 0, and then the slot: the monitor had read it full, after the submission.
 *
 * A G that was pushed out of the slot goes to the ring after the fence of the submit side. It is
 * not missed because the slot is full then. But a searcher that passes the slot by may give up
 * before it sees the ring filled, so the monitor looks at the rings of watched Ps as well.
 *
 * Starting a watch needs no fence: the monitor, which alone writes watch, answers for the slot.
 */
#include "sched/slotwatch.h"
#include "sched/runq.h"
#include "sched/sim.h"
#include "sched/wake.h"

/* average time between switches: a P quicker than QUICK comes to be watched (a thief waits as long:
 * runq.c), one slower than SLOW is no longer */
#define QUICK (3 * GORT_US)
#define SLOW (6 * GORT_US)
#define RESTLESS (500 * GORT_US) /* watch only if a search is in vain at least this often */
#define UNWATCHED_TIME (3 * GORT_MS)
#define TICK (200 * GORT_US)
#define TICK_SHORT (20 * GORT_US) /* to the second look at a slot that stands still */
#define NOWHERE UINT64_MAX

static struct {
    int64_t when; /* of the last look */
    uint32_t vain;
} last;

bool watch_nothing_in(P *p) {
    if (watched(p)) return load_acq(&p->head) == load_acq(&p->tail);
    return runq_empty(p);
}

/* The slot is full, and still so some microseconds later without a switch in between. */
static bool stands_still(P *p) {
    uint64_t switches = load_rlx(&p->n.switches);
    if (load_acq(&p->runnext) == NULL) return false;
    for (int64_t until = time_after(os_now(), 3 * GORT_US); os_now() < until;) arch_pause();
    return load_rlx(&p->n.switches) == switches && load_acq(&p->runnext) != NULL;
}

static void end_watch(M *m, P *p) {
    store_rlx(&p->watch, 0);
    fence_full(); /* pairs with the submit side's, and with that of giving up */
    if (!runq_empty(p)) wakep(m);
}

/* A look at a watched P. True: it stays watched. */
static bool watch_on(M *m, P *p, int64_t now) {
    if (load_acq(&p->head) != load_acq(&p->tail)) wakep(m);
    if (!stands_still(p)) {
        p->stood = NOWHERE;
        return true;
    }
    if (p->stood != p->seen_switches) { /* the first such look: a short interruption, perhaps */
        p->stood = p->seen_switches;
        return true;
    }
    p->watch_not_before = time_after(now, UNWATCHED_TIME);
    end_watch(m, p);
    return false;
}

int64_t watch_slots(M *m, int64_t now) {
    int64_t span = now - last.when, next = GORT_FOREVER;
    uint32_t vain = load_rlx(&sched.vain), searches = vain - last.vain;
    bool useful = load_rlx(&sched.npidle) + load_rlx(&sched.spinning) != 0 &&
                  !load_rlx(&sched.stop_waiting) && !sim_on;
    last.when = now;
    last.vain = vain;
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) {
        P *p = sched.ps[i];
        uint64_t switches = load_rlx(&p->n.switches);
        int64_t moved = (int64_t)(switches - p->seen_switches);
        p->seen_switches = switches;
        bool runs = useful && load_rlx(&p->status) == P_RUNNING;
        if (!watched(p)) {
            if (!runs || now < p->watch_not_before || searches * RESTLESS < span ||
                moved * QUICK < span)
                continue;
            p->stood = NOWHERE;
            store_rlx(&p->watch, WATCHED);
            bump(&p->watches, 1);
            next = TICK;
        } else if (!runs || (moved * SLOW < span && p->stood == NOWHERE)) {
            end_watch(m, p);
        } else if (watch_on(m, p, now)) {
            int64_t tick = p->stood == NOWHERE ? TICK : TICK_SHORT;
            if (tick < next) next = tick;
        }
    }
    return next;
}
