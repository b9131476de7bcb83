/*
 * A descriptor that the library keeps, and whether its number is still its own. See linux/ownfd.c.
 */
#ifndef OWNFD_H
#define OWNFD_H

#include "base/base.h"

/* Zero-valid: none. Written by who made it, before others know of it. */
typedef struct OwnFd {
    int number; /* the descriptor's + 1; 0: none */
    int mark;   /* of the open file; 0: it could not be marked */
    uint64_t dev, ino;
    bool told; /* dev and ino are known */
} OwnFd;

/* Any thread, any lock, in a handler: bare system calls. */
OwnFd own_fd(int fd);              /* what fd is now; none where it is an error */
int own_fd_number(const OwnFd *o); /* -EBADF: it has none, or that is somebody else's by now */
void own_fd_close(OwnFd *o);       /* if it is ours; there is none then */

#endif
