/*
 * Block and mutex profiles (blockprof.c).
 */
#ifndef BLOCKPROF_H
#define BLOCKPROF_H

#include "inspect/profile.h"
#include "sched/trace.h"

extern Profile block_profile, mutex_profile;
extern const ProfileKind contention_kind;

/* Ordinary code; the two profiles are independent. 0, -EBUSY, -ENOMEM. */
int blockprof_begin(Profile *f);
void blockprof_end(Profile *f); /* in any state; also at the end of a runtime */

/* By the tracer, in a section: m (NULL: a thread without an M) is about to make gp ready. pc: the
 * call in ready(). */
void blockprof_ready(M *m, G *gp, uintptr_t pc);

#endif
