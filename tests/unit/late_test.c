/* A P that has waited long for the maker goes to a goroutine whose thread waits, wherever that one
 * stands: in the global queue, in the queue of this P, in that or the slot of another P without a
 * thread. */
#include "sched/bound.h"
#include "sched/threadmaker.h"
#include "sched/runq.h"
#include "sched/wake.h"
#include "../lib/test.h"

/* The library's own words, inlined here: not for TSan, which does not see the rest of it. */
#define INSIDE __attribute__((noinline, no_sanitize("thread")))

enum { PS = 3, OTHERS = 5, SLOT = PS + 1 };
static P ps[PS];
static M self, home;
static G homed, others[PS][OTHERS];

/* The goroutine stands in the queue of ps[i], or in the global one (PS), behind others; or in a
 * slot. */
INSIDE static void stands_at(int i) {
    bool spinning;
    memset(ps, 0, sizeof ps);
    memset(&home, 0, sizeof home);
    homed.home = &home;
    for (int j = 0; j < PS; j++) {
        ps[j].status = P_RUNNING;
        for (int n = 0; n < OTHERS; n++) {
            if (j == i && n == 3) CHECK(runq_push(&ps[j], &homed));
            CHECK(runq_push(&ps[j], &others[j][n]));
        }
        maker_pend_locked(&ps[j], false);
    }
    if (i == SLOT) ps[2].runnext = &homed;
    if (i == PS) glist_push(&sched.global, &homed);
    give_late_p(&self, 0);
    CHECK(home.nextp == NULL); /* it is not late yet */
    give_late_p(&self, GORT_SEC);
    CHECK(home.nextp == &ps[0] && home.nextg == &homed && sched.global.head == NULL);
    for (int j = 0; j < PS; j++) {
        if (j > 0) CHECK(maker_take_pending_locked(&spinning) == &ps[j]);
        for (int n = 0; n < OTHERS; n++) CHECK(runq_pop(&ps[j]) == &others[j][n]);
        CHECK(runq_empty(&ps[j]));
    }
    CHECK(!maker_has_pending());
}

int main(void) {
    for (int i = 0; i <= SLOT; i++) stands_at(i);
    return 0;
}
