/*
 * The end of a watch (src/sched/slotwatch.c): the monitor, against a submission to the slot that
 * calls nobody while it sees the slot watched, and against a searcher that passes it by for the
 * same reason and gives its P up. Afterwards the G in the slot was found, or somebody was called
 * for it.
 */
#include "model.h"

#define RING 4
#include "sched/runq.c"
#include <sched/slotwatch.c>

Sched sched;
Settings settings;
bool sim_on;
static P ps[2];
static G gs[2];
static uint32_t called, found;

int64_t os_now(void) { return 0; }

void wakep(M *m) {
    uint32_t none = 0;
    if (load_rlx(&sched.npidle) == 0) return;
    if (load_rlx(&sched.spinning) != 0 || !cas_seq(&sched.spinning, &none, 1)) return;
    store_rlx(&called, 1);
}

/* slot_taken() of fastpath.h. KICKS: somebody was in the slot. */
static void submitter(void) {
#ifdef PLAIN_SLOT
    G *kicked = ps[0].runnext;
    store_rlx(&ps[0].runnext, &gs[0]);
#else
    G *kicked = runnext_swap(&ps[0], &gs[0]);
#endif
    if (kicked) runq_push(&ps[0], kicked);
    if (load_rlx(&sched.npidle) == 0 || load_rlx(&sched.spinning) != 0) return;
    if (kicked || !watched(&ps[0])) wakep(NULL);
}

static void monitor(void) { end_watch(NULL, &ps[0]); }

/* steal() and give_up() of find.c. */
static void searcher(void) {
    uint32_t moved;
    if (runq_steal(&ps[1], &ps[0], !watched(&ps[0]), &moved)) {
        found = 1;
        return;
    }
    add_seq(&sched.npidle, 1);
    store_rlx(&sched.spinning, load_rlx(&sched.spinning) - 1); /* the fence alone is to order it */
#ifndef NO_GIVE_UP_FENCE
    fence_full();
#endif
    if (!watch_nothing_in(&ps[0])) found = 1;
}

static void model_reset(void) {
    memset(ps, 0, sizeof ps);
    ps[0].watch = WATCHED;
#ifdef KICKS
    ps[0].runnext = &gs[1];
#endif
    sched.procs = 3;
    sched.npidle = 1; /* a third P */
    sched.spinning = 1;
    called = found = 0;
    mc_spawn(submitter);
    mc_spawn(monitor);
    mc_spawn(searcher);
}

static void model_end(void) { MUST(found || called); }

static uint64_t model_hash(uint64_t h) {
    for (int i = 0; i < 2; i++) {
        h = mix(mix(mix(mix(h, ps[i].head), ps[i].tail), WORD(ps[i].runnext)), ps[i].watch);
        h = mix_bytes(h, ps[i].ring, sizeof ps[i].ring);
    }
    return mix(mix(mix(mix(h, sched.npidle), sched.spinning), called), found);
}

int main(void) { return model_main("watch"); }
