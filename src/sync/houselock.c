/*
 * Locks of the library's own that a goroutine may hold while it waits.
 *
 * A gort_mutex held by a goroutine of an ended runtime would never be free again, and the next
 * gort_signal_notify or gort_listen would wait for ever. So a house lock knows its owner and stands
 * in a list, and the end of a runtime releases those of goroutines; plain threads keep theirs. The
 * owner is noted in the section in which the mutex is taken, and a goroutine is stopped for good
 * only between two sections: it never has the one without the other.
 *
 * A goroutine may be stopped anywhere: each step of a change must leave what is guarded valid.
 */
#include "sync/houselock.h"
#include "sync/mutex.h"

static struct {
    Lock lock;
    HouseLock *first; /* lock; never taken off */
} houses;

static void house_enlist(HouseLock *h) {
    lock(&houses.lock, RANK_LEAF);
    if (!h->listed) {
        h->listed = true;
        h->next = houses.first;
        houses.first = h;
    }
    unlock(&houses.lock);
}

void house_lock(HouseLock *h) {
    M *m = mutex_lock_in_section(enter(), &h->mu);
    h->owner = self(m);
    house_enlist(h);
    leave(m);
}

void house_unlock(HouseLock *h) {
    M *m = enter();
    h->owner = NULL;
    gort_mutex_unlock(&h->mu);
    leave(m);
}

void house_release_all(void) {
    for (HouseLock *h = houses.first; h; h = h->next)
        if (h->owner && !(h->owner->flags & GF_THREAD)) house_unlock(h);
}
