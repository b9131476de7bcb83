/*
 * Calls of libgort-hook.so that wait on a descriptor, see hookio.c. All of them on a goroutine that
 * may park, outside of any section; -errno.
 */
#ifndef HOOKIO_H
#define HOOKIO_H

#include "base/base.h"
#include "runtime.h"

#include <sys/socket.h>
#include <sys/uio.h>

struct epoll_event;

/* What is left of a write or a send. */
typedef struct HookMove {
    int fd;
    int flags;                /* of sendmsg; -1: a write */
    const struct msghdr *msg; /* all of it */
    size_t done;              /* of that, moved already */
    uint32_t life;            /* of the number, before that; 0: it had none */
    int64_t deadline;
} HookMove;
long hook_move(const HookMove *v); /* all that was moved, with `done` */

/* life: of the number, when the call began; 0: it begins here. */
long hook_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags, int64_t deadline,
                 uint32_t life);
long hook_connect(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline,
                  uint32_t life);
long hook_read_other(int fd, const struct iovec *iov, int n);
long hook_read_resume(int fd, const struct iovec *iov, int n, uint32_t life);
long hook_write_other(const HookMove *v, bool in_pieces);
/* 0: the deadline has passed */
long hook_epoll(int fd, struct epoll_event *events, int max, int64_t deadline);

#endif
