/*
 * Submit and give up (src/sched/wake.c, src/sched/find.c), the protocol step by step on the real
 * ring: a thread that makes a G ready and wakes somebody only if nobody searches, against a
 * searcher that gives its P up. Afterwards either the searcher has the G, or it was woken; never is
 * the G left in the queue while the other sleeps.
 *
 * BYSTANDER: the submitter is itself the last searcher, which has just found what it runs, and the
 * other one gives its P up without having searched where enough others did.
 */
#include "model.h"

#define RING 4
#include "sched/runq.c"

#ifndef NO_SUBMIT_FENCE
#define submit_fence() fence_full()
#else
#define submit_fence() ((void)0)
#endif
#ifndef NO_GIVE_UP_FENCE
#define give_up_fence() fence_full()
#else
#define give_up_fence() ((void)0)
#endif

Sched sched;
Settings settings;
static P ps[2];
static G gs[1];
static uint32_t woken, found;

int64_t os_now(void) { return 0; }

/* ready_tail() and wake_after_submit(): publish, fence, read the number of searchers. */
static void submitter(void) {
#ifdef BYSTANDER
    /* stop_searching() */
    if (sub_seq(&sched.spinning, 1) == 0 && load_rlx(&sched.npidle) != 0) store_rlx(&woken, 1);
#endif
    runq_push(&ps[0], &gs[0]);
    submit_fence();
    if (load_rlx(&sched.npidle) == 0 || load_rlx(&sched.spinning) != 0) return;
    uint32_t none = 0;
    if (cas_seq(&sched.spinning, &none, 1)) store_rlx(&woken, 1); /* wakep() */
}

/* steal(), then give_up(): the P is idle, no searcher any more, fence, look at everything again. */
static void searcher(void) {
    uint32_t moved;
#ifdef BYSTANDER
    bool searches = 2 * load_rlx(&sched.spinning) < sched.procs - load_rlx(&sched.npidle);
    if (!searches) {
        add_seq(&sched.npidle, 1);
        give_up_fence();
#ifndef ONLY_SEARCHERS_LOOK
        if (!runq_empty(&ps[0])) found = 1;
#endif
        return;
    }
    add_seq(&sched.spinning, 1);
#endif
    if (runq_steal(&ps[1], &ps[0], true, &moved)) {
        found = 1;
        return;
    }
    add_seq(&sched.npidle, 1);
#ifdef PLAIN_DECREMENT /* a store instead of an exchange: then the fence is all that orders it */
    store_rlx(&sched.spinning, load_rlx(&sched.spinning) - 1);
#else
    sub_seq(&sched.spinning, 1);
#endif
    give_up_fence();
#ifndef NO_RECHECK
    if (!runq_empty(&ps[0])) found = 1;
#endif
}

static void model_reset(void) {
    memset(ps, 0, sizeof ps);
    sched.procs = 2;
    sched.npidle = 0;
    sched.spinning = 1; /* the searcher */
    woken = found = 0;
    mc_spawn(submitter);
    mc_spawn(searcher);
}

static void model_end(void) { MUST(found || woken); }

static uint64_t model_hash(uint64_t h) {
    for (int i = 0; i < 2; i++) {
        h = mix(mix(mix(h, ps[i].head), ps[i].tail), WORD(ps[i].runnext));
        h = mix_bytes(h, ps[i].ring, sizeof ps[i].ring);
    }
    return mix(mix(mix(mix(h, sched.npidle), sched.spinning), woken), found);
}

int main(void) { return model_main("submit"); }
