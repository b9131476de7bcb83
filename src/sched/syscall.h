/*
 * Blocking calls. See syscall.c.
 */
#ifndef BLOCKING_H
#define BLOCKING_H

#include "runtime.h"

/* In a section, without a P: the old one if it is free, else any idle one, else the goroutine to
 * the global queue and the thread to the pool. Returns the M it goes on with. *counter counts
 * those on their way and is taken down once the goroutine has a P or is queued. */
M *acquire_p_or_queue(M *m, uint32_t *counter);

#endif
