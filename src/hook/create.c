/* Where descriptors begin: socket, socketpair, pipe, pipe2, eventfd (open is in file.c, accept in
 * socket.c, dup in close_dup.c). These calls wait for nothing. The hook notes what the number is,
 * by one store (fdhints.h): asking the kernel on its first use would cost as much as the call. */
#include "hook/hook_internal.h"

_Static_assert(SOCK_NONBLOCK == O_NONBLOCK && EFD_NONBLOCK == O_NONBLOCK, "");

INLINE uint64_t socket_what(int type) {
    bool stream = (type & 0xf) == SOCK_STREAM || (type & 0xf) == SOCK_SEQPACKET;
    int flags =
        HINT_BORN | (stream ? 0 : HINT_MESSAGES) | (type & SOCK_NONBLOCK ? HINT_NONBLOCK : 0);
    return WHAT(flags, KIND_SOCKET, KIND_SOCKET);
}

HOOK int socket(int domain, int type, int protocol) {
    if (!runner(socket)) return libc(socket)(domain, type, protocol);
    return fd_born(sys(SYS_socket, domain, type, protocol, 0, 0, 0), socket_what(type));
}

HOOK int socketpair(int domain, int type, int protocol, int fds[2]) {
    if (!runner(socketpair)) return libc(socketpair)(domain, type, protocol, fds);
    long r = sys(SYS_socketpair, domain, type, protocol, fds, 0, 0);
    if (unlikely(r < 0)) return (int)returned(r);
    hint_born(fds[0], socket_what(type));
    hint_born(fds[1], socket_what(type));
    return 0;
}

/* The ends know each other, unless their numbers do not fit into a Hint. */
INLINE void pipe_born(const int fds[2], int flags) {
    int reader = fds[0], writer = fds[1];
    uint64_t what = flags & O_NONBLOCK ? WHAT(HINT_NONBLOCK, KIND_PLAIN, KIND_PLAIN)
                                       : WHAT(0, KIND_NOWAIT, KIND_NOWAIT);
    bool pair = !(flags & (O_NONBLOCK | O_DIRECT)) && reader > 0 && writer > 0 &&
                reader < FD_HINTS && writer < FD_HINTS;
    if (likely(pair && known.retakes)) what = WHAT(0, KIND_PIPE, KIND_PIPE);
    else reader = writer = 0;
    hint_born(fds[0], what | WHAT_PEER(writer));
    hint_born(fds[1], what | WHAT_PEER(reader));
}

INLINE int pipe_on(int fds[2], int flags) {
    long r = sys(SYS_pipe2, fds, flags, 0, 0, 0, 0);
    if (unlikely(r < 0)) return (int)returned(r);
    pipe_born(fds, flags);
    return 0;
}

HOOK int pipe(int fds[2]) { return runner(pipe) ? pipe_on(fds, 0) : libc(pipe)(fds); }
HOOK int pipe2(int fds[2], int flags) {
    return runner(pipe2) ? pipe_on(fds, flags) : libc(pipe2)(fds, flags);
}

/* A write to one waits only where its counter is full. */
INLINE uint64_t event_what(unsigned count, int flags) {
    if (flags & EFD_NONBLOCK) return WHAT(HINT_NONBLOCK, KIND_PLAIN, KIND_PLAIN);
    if (unlikely(!known.retakes)) return WHAT(0, KIND_NOWAIT, KIND_OTHER);
    return WHAT(0, KIND_EVENT, KIND_EVENT) | WHAT_PEER(count > 0);
}

HOOK int eventfd(unsigned count, int flags) {
    if (!runner(eventfd)) return libc(eventfd)(count, flags);
    return fd_born(sys(SYS_eventfd2, count, flags, 0, 0, 0, 0), event_what(count, flags));
}
