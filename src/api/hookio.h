/* Calls of libgort-hook.so that wait on a descriptor (hookio.c). All are made on a goroutine that
 * may park, outside of sections, and return -errno. */
#ifndef HOOKIO_H
#define HOOKIO_H

#include "runtime.h"

#include <sys/socket.h>
#include <sys/uio.h>

struct epoll_event;

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define PIECE 4096 /* PIPE_BUF: what a pipe that polls writable takes without blocking */

INLINE size_t iov_total(const struct iovec *iov, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += iov[i].iov_len;
    return sum;
}

/* What is left of a write or a send. */
typedef struct HookMove {
    int fd;
    int flags;                /* of sendmsg; -1: a write */
    const struct msghdr *msg; /* all of it */
    size_t done;              /* bytes moved already */
    uint32_t life;            /* the number's, before they were; 0: it had none */
    int64_t deadline;
    bool ended; /* write_other, of an eventfd: the monitor ends what sleeps all the same */
} HookMove;
long hook_move(const HookMove *v); /* the bytes moved, `done` included */

/* life: the number's when the call began; 0: the call begins here. */
long hook_accept(int fd, struct sockaddr *sa, socklen_t *len, int flags, int64_t deadline,
                 uint32_t life);
long hook_connect(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline,
                  uint32_t life);
long hook_read_other(int fd, const struct iovec *iov, int n, bool looks);
/* least: so many bytes are enough, also where poll(2) wants more; 0: poll is right. */
long hook_read_terminal(int fd, const struct iovec *iov, int n, int64_t deadline, uint32_t least);
/* A terminal that the process is in the background of. */
bool hook_in_background(int fd);
long hook_read_resume(int fd, const struct iovec *iov, int n, uint32_t life);
long hook_write_other(const HookMove *v, bool in_pieces);
/* A number of the hook's own, fresh from the kernel in this section. False: it is closed. */
typedef struct HookOwn {
    int fd;
    uint32_t life, seq; /* the number's, its entry's */
} HookOwn;
bool hook_own(HookOwn *o);
/* Until it can be read; -EBADF: the program has closed it; -ETIMEDOUT; the context in use's. */
long hook_own_wait(const HookOwn *o, int64_t deadline);
void hook_own_close(const HookOwn *o); /* unless the program has. In a section, pinned */
/* Of the context in use: 0, or the error that calls end with; NULL: none is in use. */
const int32_t *hook_cause(void);
INLINE int cause_now(const int32_t *cause) { return load_acq(cause); }
/* 0: the deadline passed. */
long hook_epoll(int fd, struct epoll_event *events, int max, int64_t deadline);

#endif
