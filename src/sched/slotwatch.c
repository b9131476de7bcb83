/*
 * Slots that are watched instead of announced.
 *
 * Two goroutines that hand something back and forth put each other into the slot of their P, and
 * the P comes to it within a few nanoseconds. By the rule of wake.c each of these calls a searcher
 * while a P is idle: a thread that is started on another CPU, finds the slot empty or waits 3 us to
 * see whether it stays full, goes to sleep, and is called again. Half the time of a round trip at
 * two Ps went into this, and a CPU that nobody needed.
 *
 * So a P that switches quickly while searches are in vain is *watched*: a submission to its slot
 * calls nobody, unless it pushed somebody out of the slot into the ring, and searchers leave the
 * slot alone. In exchange the monitor comes by every TICK. A slot that stands still, full, while
 * the P does not switch from one look to the next, is what a searcher is for: the P is not watched
 * any more, nor for UNWATCHED_TIME, and one is called. So a goroutine in a slot waits at most about
 * a tick longer than it would have. The watch ends likewise if the P becomes slow, or idle, and if
 * no P is idle: then nobody would be called anyway, and the monitor returns to its own pace.
 *
 * Nothing is lost. There are two Dekker pairs, in each of which both sides write first, fence, and
 * read then:
 *
 *   submit             the watch ends             searcher gives up
 *   1  the slot        1  watch = 0               1  the P is idle, spinning--
 *   2  full fence      2  full fence              2  full fence
 *   3  watch           3  the slot; spinning      3  watch; the slot where it is 0
 *
 * Submit and end: if the submitter still saw WATCHED, the monitor sees the slot, and calls
 * somebody. End and giving up: wakep() calls nobody while one searches, but that one may have
 * passed by the slot since it was watched. If the monitor still saw it searching, the searcher sees
 * 0, and then the slot: the monitor read that full after the submission, and it is read again
 * later.
 *
 * Who was pushed out of the slot goes to the ring behind the fence of the submit side; that nobody
 * misses it is due to the slot, which is full then. A searcher that passes the slot by may give up
 * without having seen the ring filled, so the monitor looks at the rings of watched Ps as well.
 *
 * The beginning of a watch needs no order: who was in the slot, called for or not, is the monitor's
 * from then on, and the monitor alone writes watch.
 */
#include "sched/slotwatch.h"
#include "sched/runq.h"
#include "sched/sim.h"
#include "sched/wake.h"

/* to be watched, a P switches this often on average: a thief would not wait as long (runq.c) */
#define QUICK (3 * GORT_US)
#define SLOW (6 * GORT_US)       /* and to remain so */
#define RESTLESS (500 * GORT_US) /* a search in vain this often: worth it */
#define UNWATCHED_TIME (3 * GORT_MS)
#define TICK (200 * GORT_US)
#define TICK_SHORT (20 * GORT_US) /* to make sure that one stands still */
#define NOWHERE UINT64_MAX

static struct {
    int64_t when; /* of the last look */
    uint32_t vain;
} last;

bool watch_nothing_in(P *p) {
    if (watched(p)) return load_acq(&p->head) == load_acq(&p->tail);
    return runq_empty(p);
}

/* Full now, and still so some microseconds later without a switch in between. */
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

/* A watched P: true, it remains so. */
static bool watch_on(M *m, P *p, int64_t now) {
    if (load_acq(&p->head) != load_acq(&p->tail)) wakep(m);
    if (!stands_still(p)) {
        p->stood = NOWHERE;
        return true;
    }
    if (p->stood != p->seen_switches) { /* perhaps it is only just being interrupted */
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
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
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
