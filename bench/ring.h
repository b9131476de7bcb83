/*
 * A channel out of a mutex and two conditions, for those who have no other: a round trip needs one
 * place in it, a buffered channel 128. Whoever includes this has defined before, for its own kind,
 *
 *     Mutex, Cond                                the types
 *     ring_lock(Mutex *), ring_unlock(Mutex *)
 *     ring_wait(Cond *, Mutex *), ring_signal(Cond *), ring_broadcast(Cond *)
 */
#ifndef RING_H
#define RING_H

#include <stdint.h>

enum { RING_MOST = 128 };

typedef struct Ring {
    Mutex mutex;
    Cond not_full, not_empty;
    unsigned capacity, head, held; /* under mutex, like what follows */
    int closed;
    int64_t value[RING_MOST];
} Ring;

static inline void ring_put(Ring *r, int64_t v) {
    ring_lock(&r->mutex);
    while (r->held == r->capacity) ring_wait(&r->not_full, &r->mutex);
    r->value[(r->head + r->held++) % RING_MOST] = v;
    ring_signal(&r->not_empty);
    ring_unlock(&r->mutex);
}

/* 0: closed and empty. */
static inline int ring_take(Ring *r, int64_t *v) {
    ring_lock(&r->mutex);
    while (!r->held && !r->closed) ring_wait(&r->not_empty, &r->mutex);
    int got = r->held > 0;
    if (got) {
        *v = r->value[r->head++ % RING_MOST];
        r->held--;
        ring_signal(&r->not_full);
    }
    ring_unlock(&r->mutex);
    return got;
}

static inline void ring_close(Ring *r) {
    ring_lock(&r->mutex);
    r->closed = 1;
    ring_broadcast(&r->not_empty);
    ring_unlock(&r->mutex);
}

#endif
