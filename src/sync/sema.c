/*
 * The table of sleepers.
 *
 * A mutex or rwmutex has no room for a queue. Its waiters queue up in a table keyed by its address:
 * 251 buckets, a prime, to spread the objects of an array. (A wait group uses only the locks.)
 *
 * In a bucket, the sleepers of one key form a FIFO. The first of each FIFO carries its tail and
 * stands in a second list, `firsts`, the newest key in front. So ten thousand goroutines that wait
 * for one object are one step for a neighbour in the bucket.
 *
 * Departure from Go, whose semaphore counts: an object keeps its own state here, which changes
 * *under the bucket's lock* whenever a goroutine sleeps or is to be woken. So a sleeper whose
 * deadline passes takes itself off and mends the state in one step, and every wake-up has a taker.
 * And a releaser never touches the object after the change that lets others free it.
 *
 * The protocol, for an object O in bucket b:
 *
 *   sleep   lock b; look at O again and mark it as slept on in one CAS; sema_push; park, which
 *           unlocks b once the stack is left.
 *   wake    O is marked: lock b; sema_pop; change O by one CAS (free, or handed over to the popped
 *           sleeper; the mark cleared if that was the last); unlock b; ready().
 *   expire  the deadline has claimed the wait: lock b; take oneself off if still queued; clear the
 *           mark if that was the last; unlock b. Only then may the sleeper leave its frame.
 *
 * No wake-up is lost: a sleeper marks O and is queued under one hold of b, and a waker that sees
 * the mark takes b. None is wasted: a popper whose claim fails takes the next.
 *
 * Orders: b's lock orders everything here. The object's own word orders what the object protects; a
 * hand-over is ordered by ready() and park().
 */
#include "sync/sema.h"

SemaBucket sema_table[SEMA_BUCKETS];

static Sleeper *sema_find(SemaBucket *b, const void *key) {
    Sleeper *s = b->firsts;
    while (s != NULL && s->key != key) s = s->down;
    return s;
}

/* Puts s in old's place among the firsts, or in front of them all. */
static void link_first(SemaBucket *b, Sleeper *s, Sleeper *old) {
    s->up = old ? old->up : NULL;
    s->down = old ? old->down : b->firsts;
    if (s->up) s->up->down = s;
    else b->firsts = s;
    if (s->down) s->down->up = s;
}

static void unlink_first(SemaBucket *b, Sleeper *s) {
    if (s->up) s->up->down = s->down;
    else b->firsts = s->down;
    if (s->down) s->down->up = s->up;
}

/* Queues s for key: at the end, or in front where it has waited before. */
void sema_push(SemaBucket *b, Sleeper *s, const void *key, bool front) {
    Sleeper *first = sema_find(b, key);
    s->key = key;
    s->queued = true;
    s->next = s->prev = NULL;
    if (first == NULL) {
        s->last = s;
        link_first(b, s, NULL);
    } else if (front) {
        s->next = first;
        first->prev = s;
        s->last = first->last;
        link_first(b, s, first);
    } else {
        s->prev = first->last;
        first->last->next = s;
        first->last = s;
    }
}

static void remove_first(SemaBucket *b, Sleeper *s) {
    Sleeper *next = s->next;
    if (next == NULL) {
        unlink_first(b, s);
    } else {
        next->prev = NULL;
        next->last = s->last;
        link_first(b, next, s);
    }
    s->queued = false;
}

void sema_remove(SemaBucket *b, Sleeper *s) {
    if (s->prev == NULL) {
        remove_first(b, s);
        return;
    }
    s->prev->next = s->next;
    if (s->next) s->next->prev = s->prev;
    else sema_find(b, s->key)->last = s->prev;
    s->queued = false;
}

bool sema_withdraw(Sleeper *s, uint32_t *word, uint32_t mark) {
    SemaBucket *b = sema_bucket(s->object);
    lock(&b->lock, RANK_PRIM);
    bool queued = s->queued;
    if (queued) sema_remove(b, s);
    if (queued && sema_find(b, s->key) == NULL) and_seq(word, ~mark);
    unlock(&b->lock);
    return queued;
}

/* Takes off the first sleeper of key that can still be woken, for the caller to ready; NULL: none.
 * *more: others wait behind it (perhaps expired ones, which take themselves off). */
Sleeper *sema_pop(SemaBucket *b, const void *key, bool *more) {
    Sleeper *s = sema_find(b, key), *next = NULL;
    for (; s != NULL; s = next) {
        next = s->next;
        remove_first(b, s);
        if (sleeper_claim(s)) break;
    }
    *more = next != NULL;
    return s;
}

void sleepers_take(Sleeper *s, GList *list) {
    for (Sleeper *next; s != NULL; s = next) {
        next = s->next;
        s->queued = false;
        if (sleeper_claim(s)) glist_push(list, s->gp);
    }
}

void sema_pop_all(SemaBucket *b, const void *key, GList *list) {
    Sleeper *s = sema_find(b, key);
    if (s != NULL) unlink_first(b, s);
    sleepers_take(s, list);
}
