/*
 * Files: open, fsync, fdatasync, flock. (Their read and write are in stream.c.)
 */
#include "inside.h"

#include <stdarg.h>

/* Announced: the open of a FIFO waits for the other side, a file of a network may take its time. */
static int opened(const char *path, int flags, mode_t mode) {
    Stay s = stay();
    gort_enter_syscall();
    int fd = libc(open)(path, flags, mode);
    gort_exit_syscall();
    if (fd >= 0) {
        kind_set(fd, KIND_UNKNOWN);
        core->forget(fd);
    }
    stay_end(s);
    return fd;
}

HOOK int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    if (!here()) return libc(open)(path, flags, mode);
    return opened(path, flags, mode);
}

/* What programs with 64-bit offsets, or built with _FORTIFY_SOURCE, call. */
int open64(const char *path, int flags, ...) __attribute__((alias("open"), visibility("default")));
int __open_2(const char *path, int flags);
HOOK int __open_2(const char *path, int flags) { return open(path, flags, 0); }
int __open64_2(const char *path, int flags) __attribute__((alias("__open_2"), visibility("default")));

HOOK int fsync(int fd) {
    if (!here()) return libc(fsync)(fd);
    Stay s = stay();
    return (int)result(s, gort_fsync(fd));
}

static long fdatasync_blocking(void *arg) { return libc(fdatasync)(*(int *)arg); }

HOOK int fdatasync(int fd) {
    if (!here()) return libc(fdatasync)(fd);
    Stay s = stay();
    int r = (int)gort_blocking(fdatasync_blocking, &fd);
    stay_end(s);
    return r;
}

typedef struct Locking {
    int fd, how;
} Locking;

static long flock_blocking(void *arg) {
    Locking *l = arg;
    return libc(flock)(l->fd, l->how);
}

HOOK int flock(int fd, int how) {
    if (!here() || (how & LOCK_NB)) return libc(flock)(fd, how);
    int r = libc(flock)(fd, how | LOCK_NB);
    if (r == 0 || errno != EWOULDBLOCK) return r;
    Locking l = {fd, how};
    Stay s = stay();
    r = (int)gort_blocking(flock_blocking, &l);
    stay_end(s);
    return r;
}
