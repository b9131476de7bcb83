/* A fork waits until no other thread has a lock of the library. See forkgate.c. */
#ifndef FORKGATE_H
#define FORKGATE_H

#include "runtime.h"

/* In a section, with ATTN_FORK set: the section does not count until the fork is over. */
NOINLINE void fork_gate_wait(M *m);
/* m's record has just come into sched.all_ms. */
void fork_gate_joined(M *m);

#endif
