/*
 * Numbers that change hands: close, dup, dup2, dup3; and fcntl, for its locks.
 *
 * A number that the runtime knows is closed by gort_close, so that nothing of it is taken for its
 * next owner's. Whoever waits on it in a hooked call gets EBADF.
 *
 * fcntl needs no care for O_NONBLOCK: the hook never changes it (kind.c).
 */
#include "inside.h"

#include <stdarg.h>

HOOK int close(int fd) {
    if (!here()) return libc(close)(fd);
    kind_set(fd, KIND_UNKNOWN);
    Stay s = stay();
    if (core->known(fd)) return (int)result(s, gort_close(fd));
    gort_enter_syscall();
    int r = libc(close)(fd);
    gort_exit_syscall();
    stay_end(s);
    return r;
}

/* fd is another file now. */
static int renewed(int fd) {
    if (fd < 0) return fd;
    kind_set(fd, KIND_UNKNOWN);
    Stay s = stay();
    core->forget(fd);
    stay_end(s);
    return fd;
}

HOOK int dup(int fd) { return here() ? renewed(libc(dup)(fd)) : libc(dup)(fd); }

HOOK int dup2(int fd, int to) {
    if (!here() || fd == to) return libc(dup2)(fd, to);
    return renewed(libc(dup2)(fd, to));
}

HOOK int dup3(int fd, int to, int flags) {
    return here() ? renewed(libc(dup3)(fd, to, flags)) : libc(dup3)(fd, to, flags);
}

typedef struct Locking {
    int fd, cmd;
    void *arg;
} Locking;

static long lock_blocking(void *arg) {
    Locking *l = arg;
    return libc(fcntl)(l->fd, l->cmd, l->arg);
}

static int lock_file(int fd, int cmd, void *arg) {
    Locking l = {fd, cmd, arg};
    int r = libc(fcntl)(fd, cmd == F_SETLKW ? F_SETLK : F_OFD_SETLK, arg);
    if (r == 0 || (errno != EAGAIN && errno != EACCES)) return r;
    Stay s = stay();
    r = (int)gort_blocking(lock_blocking, &l);
    stay_end(s);
    return r;
}

HOOK int fcntl(int fd, int cmd, ...) {
    va_list ap;
    va_start(ap, cmd);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    if (likely(cmd != F_SETLKW && cmd != F_OFD_SETLKW && cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC) || !here())
        return libc(fcntl)(fd, cmd, arg);
    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) return renewed(libc(fcntl)(fd, cmd, arg));
    return lock_file(fd, cmd, arg);
}

/* What programs with 64-bit offsets call. */
int fcntl64(int fd, int cmd, ...) __attribute__((alias("fcntl"), visibility("default")));
