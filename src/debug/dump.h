/* Every goroutine as text: gort_dump, SIGQUIT, fatal errors. */
#ifndef DUMP_H
#define DUMP_H

#include "debug/frames.h"
#include "sched/describe.h"

/* A block for every goroutine. Any thread, in a handler, under any lock. `from`: the return address
 * at which the current goroutine's trace begins, to leave out the printing functions; 0: all. */
void dump_all_from(int fd, uintptr_t from);
void dump_to(Out *o); /* into a growing Out; ordinary goroutines only */
/* A duration: 12ms below so many seconds, 75s below so many minutes, else 12m. */
void out_age(Out *o, int64_t ns, int seconds);
/* "created by NAME in goroutine N with FUNCTION", the last two where they are known. */
void out_creator(Out *o, uintptr_t created_at, uint32_t parent, uintptr_t entry);
/* One block. `context`: of a signal handler, where gp's trace begins, or NULL. Any thread. */
void dump_g(Out *o, G *gp, void *context);
void dump_frames(Out *o, G *gp, const Frames *f); /* with these frames */

#endif
