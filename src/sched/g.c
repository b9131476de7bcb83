/*
 * Memory of Gs.
 *
 * A G record is never unmapped and never becomes anything else: late claimers (sched.h), the
 * monitor and the dump may look at one that has died meanwhile. Records come from regions of 2 MB
 * that are only ever added, so walking the regions enumerates all Gs.
 *
 * A P keeps up to G_CACHE free records, and exchanges half of them with the common list.
 */
#include "sched/g.h"

#define REGION_BYTES (2u << 20)
#define REGION_GS (REGION_BYTES / sizeof(G))
#define MAX_REGIONS 65536

static struct {
    Lock lock;
    G *free;          /* lock */
    uint32_t carved;  /* lock: records used of the newest region */
    uint32_t regions; /* atomic: published with release after the entry is written */
    G *region[MAX_REGIONS];
} gs;

/* Under gs.lock. */
static G *carve(void) {
    if (gs.regions == 0 || gs.carved == REGION_GS) {
        if (gs.regions == MAX_REGIONS) return NULL;
        G *region = os_map(REGION_BYTES, false);
        if (region == NULL) return NULL;
        gs.region[gs.regions] = region;
        store_rel(&gs.regions, gs.regions + 1); /* pairs with each_g */
        gs.carved = 0;
    }
    return &gs.region[gs.regions - 1][gs.carved++];
}

static G *take_common(void) {
    G *gp = gs.free;
    if (gp) gs.free = gp->schedlink;
    else gp = carve();
    return gp;
}

static NOINLINE void refill(P *p) {
    lock(&gs.lock, RANK_STACK);
    for (int i = 0; i < G_CACHE / 2; i++) {
        G *gp = take_common();
        if (gp == NULL) break;
        gp->schedlink = p->gfree;
        p->gfree = gp;
        p->ngfree++;
    }
    unlock(&gs.lock);
}

G *g_alloc_slow(M *m) {
    if (m->p) {
        refill(m->p);
        return m->p->gfree ? g_alloc(m) : NULL;
    }
    lock(&gs.lock, RANK_STACK);
    G *gp = take_common();
    unlock(&gs.lock);
    return gp;
}

/* Moves n records of p's cache to the common list. */
static void give_back(P *p, uint32_t n) {
    lock(&gs.lock, RANK_STACK);
    while (n-- > 0 && p->gfree) {
        G *gp = p->gfree;
        p->gfree = gp->schedlink;
        p->ngfree--;
        gp->schedlink = gs.free;
        gs.free = gp;
    }
    unlock(&gs.lock);
}

void g_free_slow(M *m, G *gp) {
    if (m->p == NULL) {
        lock(&gs.lock, RANK_STACK);
        gp->schedlink = gs.free;
        gs.free = gp;
        unlock(&gs.lock);
        return;
    }
    give_back(m->p, G_CACHE / 2);
    g_free(m, gp);
}

/* A late claimer may still read a record's ticket, and each_g its status and id: so a parcel uses
 * only what comes behind them, and leaves it zeroed. */
_Static_assert(offsetof(G, id) + 8 == offsetof(G, stack) &&
                   sizeof(G) - offsetof(G, stack) == PARCEL,
               "a parcel is the end of a record");

void *parcel_alloc(M *m) {
    G *gp = g_alloc(m);
    return gp ? &gp->stack : NULL;
}

void parcel_free(M *m, void *parcel) {
    memset(parcel, 0, PARCEL);
    g_free(m, container_of(parcel, G, stack));
}

void g_flush(P *p) { give_back(p, p->ngfree); }

uint64_t g_next_id_slow(M *m) {
    P *p = m->p;
    if (p == NULL) return load_rlx(&sched.main_by) == m ? 1 : add_rlx(&sched.next_id, 1);
    p->id_end = add_rlx(&sched.next_id, 16) + 1;
    p->id_next = p->id_end - 16;
    return p->id_next++;
}

void each_g(void (*fn)(G *gp, void *arg), void *arg) {
    uint32_t regions = load_acq(&gs.regions);
    for (uint32_t r = 0; r < regions; r++)
        for (uint32_t i = 0; i < REGION_GS; i++) {
            G *gp = &gs.region[r][i];
            uint32_t status = load_acq(&gp->status);
            if (gp->id == 0 || status == G_IDLE || status == G_DEAD) continue;
            fn(gp, arg);
        }
}

void each_g_region(void (*fn)(void *lo, void *hi)) {
    uint32_t regions = load_acq(&gs.regions);
    for (uint32_t r = 0; r < regions; r++) {
        uint32_t used = r + 1 == regions ? load_rlx(&gs.carved) : REGION_GS;
        fn(gs.region[r], gs.region[r] + used);
    }
}

void g_fork(bool before) {
    if (before) lock(&gs.lock, RANK_STACK);
    else unlock(&gs.lock);
}
