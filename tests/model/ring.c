/*
 * The run queue of a P (src/sched/runq.h, src/sched/runq.c, as they stand), with a ring of 4: an
 * owner that pushes, overflows, uses the slot and pops, against one thief; or one that pushes and
 * pops less, against two (THIEVES=2). Each G is found exactly once at the end.
 */
#include "model.h"

#define RING 4
#include "sched/runq.c"

#ifndef THIEVES
#define THIEVES 1
#endif
enum { GS = THIEVES == 1 ? 6 : 3 };

Sched sched;
Settings settings;
static P ps[3];
static G gs[GS];
static GList moved_to_global;
static int taken[GS];

int64_t os_now(void) { return 0; } /* nobody runs here: no back-off */

static void got(G *gp) {
    if (gp == NULL) return;
    MUST(gp >= gs && gp < gs + GS);
    taken[gp - gs]++;
}

/* Of those that overflow the first goes back to the head. */
static void push(P *p, G *gp) {
    GList first = {0};
    while (!runq_push(p, gp)) {
        if (!runq_overflow(p, gp, &moved_to_global)) continue;
        glist_push(&first, glist_pop(&moved_to_global));
        runq_put_first(p, &first);
        return;
    }
}

static void owner(void) {
    P *p = &ps[0];
    for (int i = 0; i < GS - 1; i++) push(p, &gs[i]);
    G *kicked = runnext_swap(p, &gs[GS - 1]);
    if (kicked) push(p, kicked);
    got(runq_pop(p));
    if (THIEVES == 2) return;
    G *next = load_rlx(&p->runnext);
    if (next && runnext_take(p, next)) got(next);
    got(runq_pop(p));
}

static void steal(P *p, bool slot_too) {
    uint32_t moved;
    G *gp = runq_steal(p, &ps[0], slot_too, &moved);
    MUST(moved <= RING / 2 && (gp != NULL) == (moved > 0));
    got(gp);
}
static void thief_1(void) { steal(&ps[1], true); }
static void thief_2(void) { steal(&ps[2], false); }

static void model_reset(void) {
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(taken, 0, sizeof taken);
    moved_to_global = (GList){0};
    ps[0].head = ps[0].tail = UINT32_MAX - 2; /* the indices wrap */
    sched.procs = 3;
    mc_spawn(owner);
    mc_spawn(thief_1);
    if (THIEVES == 2) mc_spawn(thief_2);
}

static void model_end(void) {
    for (int i = 0; i < 3; i++) {
        got(ps[i].runnext);
        MUST(ps[i].tail - ps[i].head <= RING);
        for (uint32_t k = ps[i].head; k != ps[i].tail; k++) got(ps[i].ring[k % RING]);
    }
    for (G *gp = moved_to_global.head; gp; gp = gp->schedlink) got(gp);
    for (int i = 0; i < GS; i++) MUST(taken[i] == 1); /* none lost, none twice */
}

static uint64_t model_hash(uint64_t h) {
    for (int i = 0; i < 3; i++) {
        h = mix(mix(mix(h, ps[i].head), ps[i].tail), WORD(ps[i].runnext));
        h = mix_bytes(h, ps[i].ring, sizeof ps[i].ring);
    }
    for (int i = 0; i < GS; i++) h = mix(mix(h, WORD(gs[i].schedlink)), (uint64_t)taken[i]);
    return MIX(h, moved_to_global);
}

int main(void) { return model_main("ring"); }
