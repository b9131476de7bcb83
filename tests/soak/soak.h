/*
 * What the parts of the soak share. A part is a set of goroutines that work until soak_over() and
 * keep books: at the end what came in has gone out again. Each counts its rounds, and the watcher
 * (soak.c) wants to see all of them move.
 */
#ifndef SOAK_H
#define SOAK_H

#include "../lib/test.h"

#include <stdbool.h>

typedef struct Part {
    const char *name;
    /* a goroutine of its own; returns when all is over */
    void (*run)(struct Part *part, uint64_t seed);
    void (*check)(struct Part *part); /* after all have returned; may be NULL */
    uint64_t rounds;                  /* atomic */
    uint64_t seen;                    /* the watcher's */
    int64_t moved_at, moved_cpu;      /* wall and CPU time of the process then */
} Part;

extern uint32_t soak_stop; /* atomic */
static inline bool soak_over(void) { return get(&soak_stop) != 0; }
static inline void soak_round(Part *p) { add(&p->rounds, 1); }

/* soak_sync.c, soak_world.c, soak_io.c: NULL-terminated. */
extern Part soak_sync[], soak_world[], soak_io[];

#endif
