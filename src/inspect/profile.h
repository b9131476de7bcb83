/* Stacks with counts: what every profile is (profile.c), and the formats it is written in. */
#ifndef PROFILE_H
#define PROFILE_H

#include "base/print.h"
#include "runtime.h"

#define PROFILE_DEPTH 48
#define PROFILE_STACKS 4096 /* places at first, half of them in use at most; a power of two */

typedef struct Sample {
    uint64_t hash;  /* atomic: 0 free; the thread that sets it by CAS writes the rest */
    uint64_t count; /* atomic: in parts of the kind's unit */
    int64_t value;  /* atomic: ns */
    uint32_t ready; /* atomic: the fields below are written, and never change */
    uint8_t depth, status, reason;
    char name[32]; /* the goroutine's; "": it has none */
    uintptr_t entry;
    uintptr_t pcs[PROFILE_DEPTH]; /* innermost first */
} Sample;

typedef struct ProfileKind ProfileKind;
typedef struct Profile {
    const ProfileKind *kind;
    uint32_t state; /* atomic: PROFILE_... */
    uint32_t busy;  /* atomic: threads that add a sample */
    uint32_t used;  /* atomic */
    uint32_t places;
    bool grows;         /* one thread adds: the table becomes larger */
    uint64_t lost;      /* atomic: counts of samples that found no place */
    int64_t lost_value; /* atomic: and their values */
    Sample *at;
} Profile;

enum { PROFILE_IDLE, PROFILE_CHANGING, PROFILE_ON };

/* 0, -EBUSY: it is on already, -ENOMEM. Not in a handler. */
int profile_begin(Profile *f);
void profile_end(Profile *f);  /* afterwards no thread adds, and the table can be read */
void profile_free(Profile *f); /* unmaps the table, if there is one; the next may begin */

/* Around profile_add, so that profile_end waits for it. False: off. In a handler too. */
bool profile_enter(Profile *f);
void profile_leave(Profile *f);
/* Adds one sample, whose name, entry, status, reason, depth and pcs are set. In a handler too. */
void profile_add(Profile *f, Sample *s, uint64_t count, int64_t value);

/* What found no place, as a sample of its own; false: nothing was lost. */
bool profile_lost(const Profile *f, Sample *s);

struct ProfileKind {
    const char *count, *value; /* words for the figures; value (ns) NULL: only the count */
    const char *label; /* of a sample: "goroutine", or "status": its wait reason or status */
    int64_t period;
    bool period_of_value;
    uint32_t unit;            /* that a count of one is; 0: 1 */
    int (*begin)(Profile *f); /* 0, -EBUSY, -ENOTSUP (cpuprof.c), -errno. Not in a handler */
    void (*refresh)(void);    /* several times a second; NULL: need not */
    void (*end)(Profile *f);  /* in any state; also at the end of a runtime */
};

/* A sample's count, whole. */
INLINE uint64_t profile_count(const ProfileKind *k, const Sample *s) {
    uint64_t n = load_rlx(&s->count);
    return k->unit ? (n + k->unit / 2) / k->unit : n;
}
/* A wait that the random number r picks at that rate (blockprof.c). *count: for how many waits it
 * stands, in parts of WAIT_UNIT, *value: for how long a wait; false: it is not picked. */
#define WAIT_UNIT (1u << 16)
bool wait_picked(int64_t delay, int64_t rate, uint64_t r, uint64_t *count, int64_t *value);

const char *profile_goroutine(const Sample *s); /* its name, or the function it was started with */

void pprof_write(Out *o, const Profile *f, int64_t duration); /* pprof.c */
/* For people (flame.c). all: with the library's own frames. */
void folded_write(Out *o, const Profile *f, bool all);
void flame_write(Out *o, const Profile *f, bool all);

extern Profile cpu_profile;                  /* the program's CPU time, by signal (cpuprof.c) */
extern Profile block_profile, mutex_profile; /* waits (blockprof.c), independent of each other */
/* The tracer, in a section: m (NULL: no M) is about to make gp ready. pc lies in ready(). */
void blockprof_ready(M *m, G *gp, uintptr_t pc);

/* Every goroutine that exists, by its stack, or by where it was started (pprof.c); own: the page's
 * too. 0, -ENOMEM. */
int profile_goroutines(Profile *f, bool creators, bool own);

#endif
