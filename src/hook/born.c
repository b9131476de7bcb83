/*
 * Where descriptors begin: socket, socketpair, pipe, pipe2, eventfd (open is in file.c, accept in
 * socket.c, dup in fd.c).
 *
 * They wait for nobody; they are here to be remembered. What a number stands for is then known
 * without asking the kernel on its first use, which would cost as much as the call itself: how it is tried
 * (kind.c), whether its owner set O_NONBLOCK, whether a connect can wait at all. All of it are
 * hints: where one has become wrong behind our back, a thread waits for once, and the monitor takes
 * its P.
 */
#include "inside.h"

#include <sys/eventfd.h>

_Static_assert(SOCK_NONBLOCK == O_NONBLOCK && EFD_NONBLOCK == O_NONBLOCK, "");

/* Numbers of a bare call that gave no error. */
static void socket_born(int fd, int type) {
    bool stream = (type & 0xf) == SOCK_STREAM || (type & 0xf) == SOCK_SEQPACKET;
    renewed(fd);
    kind_set_both(fd, KIND_SOCKET);
    flags_add(fd, HINT_BORN | (stream ? 0 : HINT_MESSAGES) | (type & SOCK_NONBLOCK ? HINT_NONBLOCK : 0));
}

static void event_born(int fd, int flags, int write_kind) {
    renewed(fd);
    if (flags & O_NONBLOCK) {
        kind_set_both(fd, KIND_PLAIN);
        flags_add(fd, HINT_NONBLOCK);
    } else {
        kind_set(fd, READING, KIND_NOWAIT);
        kind_set(fd, WRITING, write_kind);
    }
}

HOOK int socket(int domain, int type, int protocol) {
    if (!here()) return libc(socket)(domain, type, protocol);
    long fd = sys(SYS_socket, domain, type, protocol, 0, 0, 0);
    if (fd >= 0) socket_born((int)fd, type);
    return (int)returned(fd);
}

HOOK int socketpair(int domain, int type, int protocol, int fds[2]) {
    if (!here()) return libc(socketpair)(domain, type, protocol, fds);
    long r = sys(SYS_socketpair, domain, type, protocol, fds, 0, 0);
    for (int i = 0; i < 2 && r >= 0; i++) socket_born(fds[i], type);
    return (int)returned(r);
}

HOOK int pipe2(int fds[2], int flags) {
    if (!here()) return libc(pipe2)(fds, flags);
    long r = sys(SYS_pipe2, fds, flags, 0, 0, 0, 0);
    for (int i = 0; i < 2 && r >= 0; i++) event_born(fds[i], flags, KIND_NOWAIT);
    return (int)returned(r);
}

HOOK int pipe(int fds[2]) { return here() ? pipe2(fds, 0) : libc(pipe)(fds); }

/* Only one whose counter is full makes a writer wait. */
HOOK int eventfd(unsigned count, int flags) {
    if (!here()) return libc(eventfd)(count, flags);
    long fd = sys(SYS_eventfd2, count, flags, 0, 0, 0, 0);
    if (fd >= 0) event_born((int)fd, flags, KIND_PLAIN);
    return (int)returned(fd);
}
