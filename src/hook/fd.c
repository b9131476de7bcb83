/*
 * Numbers that change hands: close, dup, dup2, dup3; and fcntl, for its locks.
 *
 * A number that the runtime knows is closed by gort_close, so that nothing of it is taken for its
 * next owner's. Whoever waits on it in a hooked call gets EBADF.
 *
 * fcntl needs no care for O_NONBLOCK, which the hook never changes (kind.c); it is noted when it is
 * set, as a hint that a call will not wait.
 */
#include "inside.h"

static NOINLINE int close_known(int fd) {
    Stay s;
    stay(&s);
    return (int)result(&s, gort_close(fd));
}

HOOK int close(int fd) {
    hint_forget(fd);
    if (!here()) return libc(close)(fd);
    if (unlikely(desc_known(known.descs, fd))) return close_known(fd);
    return (int)returned(sys(SYS_close, fd, 0, 0, 0, 0, 0));
}

static NOINLINE void forget(int fd) {
    Stay s;
    stay(&s);
    core->forget(fd);
    stay_end(&s);
}

int renewed(long fd) {
    if (fd < 0) return (int)returned(fd);
    hint_forget((int)fd);
    if (unlikely(desc_known(known.descs, (int)fd))) forget((int)fd);
    return (int)fd;
}

/* As renewed(), and it is the same file as `from`. */
static int copied(long fd, int from) {
    int r = renewed(fd);
    if (likely(r >= 0)) hint_copy(r, from);
    return r;
}

HOOK int dup(int fd) { return here() ? copied(sys(SYS_dup, fd, 0, 0, 0, 0, 0), fd) : libc(dup)(fd); }

HOOK int dup2(int fd, int to) {
    if (!here() || fd == to) return libc(dup2)(fd, to);
    return copied(sys(SYS_dup3, fd, to, 0, 0, 0, 0), fd);
}

HOOK int dup3(int fd, int to, int flags) {
    return here() ? copied(sys(SYS_dup3, fd, to, flags, 0, 0, 0), fd) : libc(dup3)(fd, to, flags);
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
    Stay s;
    stay(&s);
    r = (int)gort_blocking(lock_blocking, &l);
    stay_end(&s);
    return r;
}

/* The owner has set or taken O_NONBLOCK, on whatever thread. With it, whatever is no socket is called as
 * it is. */
static int flags_set(int fd, long flags, long r) {
    if (r >= 0 && (flags & O_NONBLOCK)) {
        flags_add(fd, HINT_NONBLOCK);
        for (int dir = READING; dir <= WRITING; dir++)
            if (kind_hint(fd, dir) != KIND_SOCKET) kind_set(fd, dir, KIND_PLAIN);
    } else if (r >= 0 && (flags_hint(fd) & HINT_NONBLOCK)) {
        flags_take(fd, HINT_NONBLOCK);
        for (int dir = READING; dir <= WRITING; dir++)
            if (kind_hint(fd, dir) != KIND_SOCKET) kind_set(fd, dir, KIND_UNKNOWN);
    }
    return (int)returned(r);
}

/* Flags: what libc does with them is the bare call, and so are the locks that do not wait. The third
 * argument comes where that of an ordinary function does, and no prologue for more is needed. */
HOOK int hook_fcntl(int fd, int cmd, void *arg) __asm__("fcntl");
HOOK int hook_fcntl(int fd, int cmd, void *arg) {
    if (likely(cmd >= F_GETFD && cmd <= F_SETLK)) {
        long r = sys(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
        return cmd == F_SETFL ? flags_set(fd, (long)arg, r) : (int)returned(r);
    }
    if ((cmd != F_SETLKW && cmd != F_OFD_SETLKW && cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC) || !here())
        return libc(fcntl)(fd, cmd, arg);
    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) return copied(sys(SYS_fcntl, fd, cmd, arg, 0, 0, 0), fd);
    return lock_file(fd, cmd, arg);
}
_Static_assert(F_GETFD == 1 && F_SETFD == 2 && F_GETFL == 3 && F_SETFL == 4 && F_GETLK == 5 && F_SETLK == 6, "");

/* What programs with 64-bit offsets call. */
HOOK int hook_fcntl64(int fd, int cmd, void *arg) __asm__("fcntl64") __attribute__((alias("fcntl")));
