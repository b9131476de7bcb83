/* Slots that are watched instead of announced: when a watch begins and ends, and that who stands in
 * a watched slot is come for while the one that put it there does not let go of its P. */
#include "sched/slotwatch.h"
#include "sync/chan.h"
#include "../lib/test.h"

#define INSIDE __attribute__((noinline, no_sanitize("thread")))

/* ---- the decision, on a P made by hand ------------------------------------------------------- */

enum { SPAN = GORT_MS };
static P fake;
static G somebody;
static int64_t clock_now = GORT_SEC;

/* A look after SPAN in which the P has switched so often, and so many searches were in vain. */
INSIDE static int64_t look(uint64_t switches, uint32_t vain) {
    fake.n.switches += switches;
    sched.vain += vain;
    return watch_slots(NULL, clock_now += SPAN);
}
INSIDE static bool fake_watched(void) { return watched(&fake); }

INSIDE static void begin(void) {
    clock_now += GORT_SEC; /* whatever was held against it */
    look(0, 0);
    CHECK_LT(look(10000, 100), SPAN);
    CHECK(fake_watched());
}

INSIDE static void decides(void) {
    sched.ps[0] = &fake;
    sched.procs = 1;
    sched.npidle = sched.spinning = 1; /* and wakep() finds one that searches */
    fake.status = P_RUNNING;
    CHECK(look(0, 0) == GORT_FOREVER);
    CHECK(look(10000, 0) == GORT_FOREVER && !fake_watched()); /* nobody is called in vain */
    CHECK(look(10, 100) == GORT_FOREVER && !fake_watched());  /* it is slow */
    begin();
    CHECK(look(10000, 0) < SPAN && fake_watched()); /* it goes on without anybody being called */
    CHECK(look(10, 0) == GORT_FOREVER && !fake_watched());
    begin();
    fake.status = P_IDLE;
    CHECK(look(10000, 0) == GORT_FOREVER && !fake_watched());
    fake.status = P_RUNNING;
    begin();
    sched.npidle = sched.spinning = 0; /* there is nobody to be called */
    CHECK(look(10000, 0) == GORT_FOREVER && !fake_watched());
    sched.npidle = sched.spinning = 1;
    begin();
    fake.runnext = &somebody;
    CHECK(look(10000, 0) < SPAN && fake_watched()); /* it may be about to take it */
    CHECK(look(10000, 0) < SPAN && fake_watched()); /* so it was: the next one has come */
    CHECK(look(0, 0) == GORT_FOREVER && !fake_watched());
    CHECK(look(10000, 100) == GORT_FOREVER && !fake_watched()); /* not soon again */
    fake.runnext = NULL;
    begin();
    sched.ps[0] = NULL;
    sched.procs = sched.npidle = sched.spinning = 0;
}

/* ---- nobody is left standing ----------------------------------------------------------------- */

typedef struct Pair {
    gort_chan *c;
    int came, over;
} Pair;

static void partner(void *arg) {
    Pair *pair = arg;
    while (gort_chan_recv(pair->c, NULL) == 0) add(&pair->came, 1);
    set(&pair->over, 1);
}

INSIDE static bool waits(gort_chan *c) {
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    bool there = c->recvq.first != NULL;
    unlock(&c->lock);
    leave(m);
    return there;
}

/* As if the monitor had found this P quick; it is pinned. False: there is somebody in the slot. */
INSIDE static bool pretend_watched(int id) {
    P *p = sched.ps[id];
    store_rlx(&p->watch, WATCHED);
    return load_rlx(&p->runnext) == NULL;
}
INSIDE static bool still_watched(int id) { return watched(sched.ps[id]); }

static int left_standing(int argc, char **argv) {
    Pair pair = {.c = gort_chan_new(0, 0)};
    CHECK_EQ(gort_maxprocs(2) > 0, 1);
    CHECK_EQ(gort_go(partner, &pair), 0);
    int meant = 0, tried = 0;
    while (meant < 100 / TEST_SCALE) {
        wait_until(waits(pair.c));
        int id = gort_pin();
        bool alone = pretend_watched(id);
        CHECK_EQ(gort_chan_send(pair.c, NULL), 0); /* into the slot of this P, which stays ours */
        meant += alone && still_watched(id);
        tried++;
        while (get(&pair.came) < tried) {} /* only another P can run it */
        gort_unpin();
    }
    gort_chan_close(pair.c);
    wait_until(get(&pair.over));
    gort_chan_release(pair.c);
    return 0;
}

int main(int argc, char **argv) {
    decides();
    if (test_simulated()) return 0; /* one thread: nobody else could come */
    return gort_main(left_standing, argc, argv);
}
