/*
 * Taking a P from a thread that is blocked in the kernel, without a signal. See retake.c.
 */
#ifndef RETAKE_H
#define RETAKE_H

#include "runtime.h"

extern bool retake_works; /* membarrier is there */
void retake_start(void);
void retaker_lock(void); /* monitor and stop-the-world exclude each other, fairly */
void retaker_unlock(void);
/* Both with the retaker lock held; the P, now the caller's, or NULL. */
/* an unannounced or announced call; at_once: no waiting period */
P *retake_if_asleep(M *m, bool at_once);
P *retake_announced(M *m, uint32_t syscalltick);
P *retake_hammer(M *m); /* tests: no hints at all */

#endif
