/*
 * Records of goroutines: type-stable, enumerable. See g.c.
 */
#ifndef G_H
#define G_H

#include "runtime.h"

/* A fresh G in state G_IDLE; NULL: no memory. In a section. */
G *g_alloc(M *m);
/* Gives a dead G back. In a section; the G has no stack any more. */
void g_free(M *m, G *gp);
/* Parcels: what gort_go_copy copied waits, until the goroutine has a stack, in the second half of a
 * spare record. NULL: no memory. In a section. */
#define PARCEL ((size_t)40)
void *parcel_alloc(M *m);
void parcel_free(M *m, void *parcel);

/* The next goroutine id, from m's P's batch. */
uint64_t g_next_id(M *m);
/* Calls fn for every G in use. Takes no lock: what it sees may change under it. */
void each_g(void (*fn)(G *gp, void *arg), void *arg);
/* Calls fn for all records, free ones included, as ranges of memory. Takes no lock. */
void each_g_region(void (*fn)(void *lo, void *hi));
/* The free lists of a P that goes away. */
void g_flush(P *p);

#endif
