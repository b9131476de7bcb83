/*
 * Block and mutex profiles (blockprof.c).
 */
#ifndef BLOCKPROF_H
#define BLOCKPROF_H

#include "debug/profile.h"
#include "sched/trace.h"

extern Profile block_profile, mutex_profile;
extern const ProfileKind contention_kind;

/* Ordinary code; the two profiles are independent. 0, -EBUSY, -ENOMEM. */
int blockprof_begin(Profile *f);
void blockprof_end(Profile *f); /* also at the end of a runtime, in any state */

/* The tracer: m (NULL: a thread without one) makes gp ready, which still waits; pc: where in
 * ready() it was called. In a section. */
void blockprof_ready(M *m, G *gp, uintptr_t pc);

#endif
