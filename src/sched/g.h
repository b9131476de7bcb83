/* Records of goroutines: type-stable, enumerable. See g.c. */
#ifndef G_H
#define G_H

#include "runtime.h"

#define G_CACHE 256 /* free records that a P keeps for itself */

/* A fresh G in state G_IDLE; NULL: no memory. In a section. */
G *g_alloc_slow(M *m); /* the P has none, or there is no P */
INLINE G *g_alloc(M *m) {
    P *p = m->p;
    if (unlikely(p == NULL || p->gfree == NULL)) return g_alloc_slow(m);
    G *gp = p->gfree;
    p->gfree = gp->schedlink;
    p->ngfree--;
    return gp;
}

/* Gives a dead G back. In a section; the G has no stack any more. */
void g_free_slow(M *m, G *gp); /* the P has enough, or there is no P */
INLINE void g_free(M *m, G *gp) {
    P *p = m->p;
    gp->id = 0;
    gp->fn = NULL;
    gp->arg = NULL; /* a collector scans free records too, since one may be being filled in */
    if (unlikely(p == NULL || p->ngfree == G_CACHE)) {
        g_free_slow(m, gp);
        return;
    }
    gp->schedlink = p->gfree;
    p->gfree = gp;
    p->ngfree++;
}
/* Parcels: a spare record keeps what gort_go_copy copied until there is a stack. In a section. */
#define PARCEL ((size_t)40)
void *parcel_alloc(M *m);
void parcel_free(M *m, void *parcel);

/* The next goroutine id, from m's P's batch. */
uint64_t g_next_id_slow(M *m); /* the batch is at its end, or there is no P */
INLINE uint64_t g_next_id(M *m, P *p) {
    return likely(p != NULL && p->id_next != p->id_end) ? p->id_next++ : g_next_id_slow(m);
}
/* Calls fn for every G in use. Takes no lock: a G may change meanwhile. */
void each_g(void (*fn)(G *gp, void *arg), void *arg);
/* Calls fn for all records, free ones included, as ranges of memory. Takes no lock. */
void each_g_region(void (*fn)(void *lo, void *hi));
/* Moves the free records of p, which goes away, to the common list. */
void g_flush(P *p);
void g_fork(bool before); /* forkgate.c */

#endif
