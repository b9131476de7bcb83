/*
 * The ends of a descriptor other than gort_close, for libgort-hook.so. See close.c. Each wakes
 * whoever waits with -EBADF, and waits until no call is inside the kernel with the number.
 */
#ifndef CLOSE_H
#define CLOSE_H

/* dup3(2) onto a number that is open; -EBADF also where another is closing it. Outside of any
 * section. */
int desc_replace(int from, int fd, int flags);

/* Before a close that is made elsewhere: 0, or -EBADF where another is closing it. */
int desc_shut(int fd);

#endif
