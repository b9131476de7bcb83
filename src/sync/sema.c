/*
 * The table of sleepers.
 *
 * A mutex or rwmutex has no room for a queue. Its waiters queue up in a table keyed by its address:
 * 251 buckets, a prime, to spread the objects of an array. (A wait group uses only the locks.)
 *
 * In a bucket, the sleepers of one key form a FIFO. The first of each FIFO carries its tail and
 * stands in a tree of the keys: at depth d, bit d of the key's hash tells the side. Below a place
 * all hashes begin alike, so any node from below may stand there: one that goes is replaced by a
 * leaf, and nothing is ever balanced. The hash is one to one, so two
 * keys part at last; a hundred thousand stand some twenty deep.
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

/* Where the first sleeper of key stands, or would stand. */
static Sleeper **sema_place(SemaBucket *b, const void *key) {
    Sleeper **at = &b->root;
    for (uint64_t bits = sema_hash(key); *at != NULL && (*at)->key != key; bits <<= 1)
        at = &(*at)->below[bits >> 63];
    return at;
}

/* s, the first of its key, stands at that place from here on, with what was below old. */
static void stand_at(Sleeper **at, Sleeper *s, const Sleeper *old) {
    s->below[0] = old ? old->below[0] : NULL;
    s->below[1] = old ? old->below[1] : NULL;
    *at = s;
}

/* Nobody waits for the key of the node at that place any more. */
static void vacate(Sleeper **at) {
    Sleeper *old = *at, **leaf = at;
    while ((*leaf)->below[0] != NULL || (*leaf)->below[1] != NULL)
        leaf = &(*leaf)->below[(*leaf)->below[0] == NULL];
    Sleeper *s = *leaf;
    *leaf = NULL;
    if (s != old) stand_at(at, s, old);
}

/* Queues s for key: at the end, or in front where it has waited before. */
void sema_push(SemaBucket *b, Sleeper *s, const void *key, bool front) {
    Sleeper **at = sema_place(b, key), *first = *at;
    s->key = key;
    s->queued = true;
    s->next = s->prev = NULL;
    if (first == NULL) {
        s->last = s;
        stand_at(at, s, NULL);
    } else if (front) {
        s->next = first;
        first->prev = s;
        s->last = first->last;
        stand_at(at, s, first);
    } else {
        s->prev = first->last;
        first->last->next = s;
        first->last = s;
    }
}

/* The node at that place leaves its FIFO. */
static void remove_first(Sleeper **at) {
    Sleeper *s = *at, *next = s->next;
    if (next == NULL) {
        vacate(at);
    } else {
        next->prev = NULL;
        next->last = s->last;
        stand_at(at, next, s);
    }
    s->queued = false;
}

void sema_remove(SemaBucket *b, Sleeper *s) {
    if (s->prev == NULL) {
        remove_first(sema_place(b, s->key));
        return;
    }
    s->prev->next = s->next;
    if (s->next) s->next->prev = s->prev;
    else (*sema_place(b, s->key))->last = s->prev;
    s->queued = false;
}

bool sema_withdraw(Sleeper *s, uint32_t *word, uint32_t mark) {
    SemaBucket *b = sema_bucket(s->object);
    lock(&b->lock, RANK_PRIM);
    bool queued = s->queued;
    if (queued) sema_remove(b, s);
    if (queued && *sema_place(b, s->key) == NULL) and_seq(word, ~mark);
    unlock(&b->lock);
    return queued;
}

/* Takes off the first sleeper of key that can still be woken, for the caller to ready; NULL: none.
 * *more: others wait behind it (perhaps expired ones, which take themselves off). */
Sleeper *sema_pop(SemaBucket *b, const void *key, bool *more) {
    Sleeper **at = sema_place(b, key), *s = *at, *next = NULL;
    for (; s != NULL; s = next) {
        next = s->next;
        remove_first(at);
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
    Sleeper **at = sema_place(b, key), *s = *at;
    if (s != NULL) vacate(at);
    sleepers_take(s, list);
}
