/* The forker comes by libc's locks. See forklibc.c. */
#ifndef FORKLIBC_H
#define FORKLIBC_H

#include "runtime.h"

/* Before all other steps of a fork. self: of the thread that forks, in no section; or NULL. */
void fork_wants_libc(M *self);
void fork_had_libc(void);

#endif
