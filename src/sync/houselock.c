/*
 * Locks of the library's own that a goroutine may hold while it waits.
 *
 * A gort_mutex held by a goroutine of an ended runtime would never be free again, and the next
 * gort_signal_notify or gort_listen would wait for ever. So a house lock knows its owner and stands
 * in a list, and the end of a runtime releases those of goroutines. Plain threads keep theirs, and
 * so does the function of a blocking call, which may still finish. The owner is noted in the
 * section that takes the mutex: a goroutine, stopped for good between two sections, has both.
 *
 * A goroutine that may not block may not ask for one, whether it is free or not: else a program's
 * misuse would show only where two calls meet.
 *
 * A goroutine may be stopped anywhere, and a child of fork has none of its parent's other threads:
 * each step of a change must leave what is guarded valid.
 */
#include "sync/houselock.h"
#include "sync/mutex.h"

static struct {
    Lock lock;
    HouseLock *first; /* lock; never taken off */
} houses;

/* False: inside an announced call, which may not park, and another has the lock. */
static bool house_taken(HouseLock *h) {
    M *m = enter();
    bool announced = !m->plain && in_blocking_call(m), taken = true;
    const char *misuse = m->plain || announced ? NULL : unfinished(m);
    if (misuse) fatal("blocking %s", misuse);
    if (announced) taken = gort_mutex_try_lock(&h->mu) == 0;
    else m = mutex_await_in_section(m, &h->mu);
    if (taken) {
        store_rlx(&h->owner, self(m));
        h->outlives = announced;
        lock(&houses.lock, RANK_LEAF);
        if (!h->listed) {
            h->listed = true;
            h->next = houses.first;
            houses.first = h;
        }
        unlock(&houses.lock);
    }
    leave(m);
    return taken;
}

/* The nap is outside of the section: the end of a runtime, and a fork, wait for sections before
 * they free the locks of those that do not run on. */
void house_lock(HouseLock *h) {
    while (!house_taken(h)) os_nap(50 * GORT_US);
}

void house_unlock(HouseLock *h) {
    M *m = enter();
    store_rlx(&h->owner, NULL);
    gort_mutex_unlock(&h->mu);
    leave(m);
}

void house_release_all(void) {
    for (HouseLock *h = houses.first; h; h = h->next) {
        G *owner = load_rlx(&h->owner);
        if (owner && !(owner->flags & GF_THREAD) && !h->outlives) house_unlock(h);
    }
}

void house_in_child(void) {
    M *m = getm();
    for (HouseLock *h = houses.first; h; h = h->next)
        if (h->owner == NULL || m == NULL || h->owner != m->pseudo) {
            h->mu = (gort_mutex){0};
            h->owner = NULL;
        }
}
