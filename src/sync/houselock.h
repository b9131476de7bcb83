/*
 * Locks of the library's own that a goroutine may hold while it waits. See houselock.c.
 */
#ifndef HOUSELOCK_H
#define HOUSELOCK_H

#include "runtime.h"

/* Static, valid when zeroed. */
typedef struct HouseLock {
    gort_mutex mu;
    G *owner;               /* mu */
    bool listed;            /* houses.lock */
    struct HouseLock *next; /* houses.lock */
} HouseLock;

void house_lock(HouseLock *h); /* as gort_mutex_lock */
void house_unlock(HouseLock *h);
/* The runtime has ended, its goroutines' waits are undone: frees the locks they held. */
void house_release_all(void);

#endif
