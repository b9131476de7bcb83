/* The ends of a descriptor other than gort_close, for libgort-hook.so (close.c). Each wakes all
 * waiters with -EBADF, and waits until no call is inside the kernel with the number. */
#ifndef CLOSE_H
#define CLOSE_H

#include "base/base.h"

/* dup3(2) onto an open number; -EBADF also if it is being closed. Outside of sections. */
int desc_replace(int from, int fd, int flags);

/* gort_close of the descriptor whose entry had this sequence; -EBADF: it is closed. */
int desc_close(int fd, uint32_t seq);

/* Before a close that libc makes: 0, or -EBADF where another call is closing it. */
int desc_shut(int fd);

#endif
