/* Block and mutex profiles (blockprof.c). */
#ifndef BLOCKPROF_H
#define BLOCKPROF_H

#include "inspect/profile.h"
#include "sched/trace.h"

extern Profile block_profile, mutex_profile;
extern const ProfileKind contention_kind;

/* Not in a handler. The two profiles are independent. 0, -EBUSY, -ENOMEM. */
int blockprof_begin(Profile *f);
void blockprof_end(Profile *f); /* in any state; also at the end of a runtime */

/* The tracer, in a section: m (NULL: no M) is about to make gp ready. pc lies in ready(). */
void blockprof_ready(M *m, G *gp, uintptr_t pc);

#endif
