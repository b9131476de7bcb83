/* Files: open, fsync, fdatasync, flock. (read and write are in stream.c.) */
#include "hook/hook_internal.h"

INLINE long open_now(const char *path, int flags, mode_t mode) {
    return sys(SYS_openat, AT_FDCWD, path, flags, mode, 0, 0);
}

/* A whole program's thread may be cancelled while it waits here, which libc's call knows. */
static long open_point(const char *path, int flags, mode_t mode) {
    int err = errno, fd = libc(open)(path, flags, mode);
    if (fd >= 0) return fd;
    fd = -errno;
    errno = err;
    return fd;
}

/* An open may wait (a FIFO, a network's file): announced where the monitor cannot take the P. */
static COLD int open_announced(const char *path, int flags, mode_t mode) {
    if (!here()) return libc(open)(path, flags, mode);
    bool mine = stay();
    gort_enter_syscall();
    long fd = open_now(path, flags, mode);
    gort_exit_syscall();
    if (fd >= 0) hint_born((int)fd, 0);
    stay_end(mine);
    return (int)returned(fd);
}

static COLD int open_slept(long fd) {
    core_pass();
    return fd_born(fd, 0);
}

/* Perhaps a terminal, which may not be read as it is (terminal.c). The name can be read: it was
 * opened. */
INLINE bool in_dev(const char *path) {
    if (likely(path[0] != '/' || (path[1] != 'd' && path[1] != 'p'))) return false;
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* Most files never make a reader wait, so HOT is the guess; others are found out (optimistic.c). */
INLINE uint64_t open_guess(const char *path, int flags) {
    if (flags & O_PATH || in_dev(path)) return 0;
    return flags & O_NONBLOCK ? WHAT(HINT_NONBLOCK, KIND_PLAIN, KIND_PLAIN)
                              : WHAT(HINT_OPENED, KIND_HOT, KIND_HOT);
}

/* Three arguments: as hook_fcntl. */
HOOK int hook_open(const char *path, int flags, mode_t mode) __asm__("open");
HOOK int hook_open(const char *path, int flags, mode_t mode) {
    M *m = runner(open);
    if (m == NULL) return libc(open)(path, flags, mode);
    if (unlikely(!known.retakes)) return open_announced(path, flags, mode);
    long fd = unlikely(known.threads) ? open_point(path, flags, mode) : open_now(path, flags, mode);
    return was_taken(m) ? open_slept(fd) : fd_born(fd, fd < 0 ? 0 : open_guess(path, flags));
}

/* What programs with 64-bit offsets, or built with _FORTIFY_SOURCE, call. */
HOOK __typeof__(hook_open) hook_open64 __asm__("open64") __attribute__((alias("open")));
int __open_2(const char *path, int flags);
HOOK int __open_2(const char *path, int flags) { return hook_open(path, flags, 0); }
HOOK __typeof__(__open_2) __open64_2 __attribute__((alias("__open_2")));

HOOK int fsync(int fd) { return here() ? (int)returned(staying(gort_fsync(fd))) : libc(fsync)(fd); }

HOOK int fdatasync(int fd) {
    return here() ? (int)libc_blocking(fdatasync, fd, 0, 0, 0, 0, 0) : libc(fdatasync)(fd);
}

HOOK int flock(int fd, int how) {
    if (!runner(flock) || (how & LOCK_NB)) return libc(flock)(fd, how);
    long r = sys(SYS_flock, fd, how | LOCK_NB, 0, 0, 0, 0);
    if (r != -EWOULDBLOCK) return (int)returned(r);
    return here() ? (int)libc_blocking(flock, fd, how, 0, 0, 0, 0) : libc(flock)(fd, how);
}
