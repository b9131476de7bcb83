/* Blocking calls. See syscall.c. */
#ifndef SYSCALL_H
#define SYSCALL_H

#include "runtime.h"

/* In a section, without a P: takes the old one if it is idle, else any idle one, else the goroutine
 * goes to the global queue and the thread to the pool. Returns the M the goroutine goes on with.
 * *counter goes down once the goroutine has a P or is queued. */
M *acquire_p_or_queue(M *m, uint32_t *counter);

#endif
