/* A descriptor that the library keeps, and whether its number is still its own: linux/ownfd.c. */
#ifndef OWNFD_H
#define OWNFD_H

#include "base/base.h"

/* Zero-valid: none. Written by its maker, before other threads know of it. */
typedef struct OwnFd {
    int number; /* the descriptor's + 1; 0: none */
    int mark;   /* on the open file; 0: it could not be marked */
    uint64_t dev, ino;
    bool told; /* dev and ino are known */
} OwnFd;

/* Any thread, any lock, in a handler. */
OwnFd own_fd(int fd);              /* what fd is now; none where fd is -errno */
int own_fd_number(const OwnFd *o); /* -EBADF: none, or the number has another owner */
void own_fd_close(OwnFd *o);       /* if it is still ours; then o is none */

#endif
