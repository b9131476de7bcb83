/* Goroutines that have been blocked for long, by where they were started (leak.c). */
#ifndef LEAK_H
#define LEAK_H

#include "base/print.h"
#include "runtime.h"

#define LEAK_SITES 512 /* entries, three quarters of them in use at most; a power of two */

typedef struct LeakSite {
    uintptr_t created_at, entry;
    uint64_t count;           /* 0: free */
    int64_t youngest, oldest; /* ns blocked */
    uint8_t reason;
} LeakSite;

typedef struct Leaks {
    LeakSite at[LEAK_SITES];
    uint32_t used;
    uint64_t total, rest; /* rest: those without a place */
    int64_t now, age;
} Leaks;

/* For each_g, with a Leaks whose `now` and `age` are set: adds gp to it if it has been blocked for
 * so long. */
void leak_collect(G *gp, void *leaks);
/* Prints the goroutines that at `now` have been blocked for `age` ns or more, and returns their
 * number. l: room for its table. Takes no lock, allocates nothing. */
uint64_t leak_report(Leaks *l, Out *o, int64_t now, int64_t age);

#endif
