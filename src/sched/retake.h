/* Taking a P from a thread that is blocked in the kernel, without a signal. See retake.c. */
#ifndef RETAKE_H
#define RETAKE_H

#include "runtime.h"

extern bool retake_works; /* membarrier is there */
void retake_start(void);
void retaker_lock(void); /* monitor and stop-the-world exclude each other, fairly */
void retaker_unlock(void);
/* All with the retaker lock held. They give the P, now the caller's, or NULL. */
/* the thread sleeps, in whatever call; at_once: also if it ran since the last look */
P *retake_if_asleep(M *m, bool at_once);
P *retake_announced(M *m, uint32_t syscalltick);
P *retake_hammer(M *m); /* tests: no hints at all */

#endif
