/* Locks of the library's own that a goroutine may hold while it waits. See houselock.c. */
#ifndef HOUSELOCK_H
#define HOUSELOCK_H

#include "runtime.h"

/* Static, valid when zeroed. */
typedef struct HouseLock {
    gort_mutex mu;
    G *owner;               /* atomic, mu */
    bool outlives;          /* mu: taken inside an announced call, which may go on after the end */
    bool listed;            /* houses.lock */
    struct HouseLock *next; /* houses.lock */
} HouseLock;

void house_lock(HouseLock *h); /* as gort_mutex_lock */
void house_unlock(HouseLock *h);
/* The runtime has ended, its goroutines' waits are undone: frees the locks they held. */
void house_release_all(void);
/* In a child of fork, made while no runtime ran: frees those of threads that are not there. */
void house_in_child(void);

#endif
