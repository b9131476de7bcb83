/*
 * What a descriptor is, and what its owner wants of it.
 *
 * The kind decides how a call is tried without blocking:
 *
 *   SOCKET   MSG_DONTWAIT
 *   NOWAIT   preadv2 and pwritev2 with RWF_NOWAIT: pipes and their like
 *   HOT      likewise, but it has not blocked for long: called as it is (optimistic.c)
 *   PIPE     made here, both ends: called as it is while something is known to be there (fdhints.h)
 *   EVENT    an eventfd made here, likewise
 *   PLAIN    called as it is, since it does not wait for anybody: regular files, directories, the
 *            memory devices (/dev/null, zero, urandom), a write to an eventfd. A slow disk is
 *            noticed by the monitor, which takes the P from a thread that sleeps in the kernel
 *   OTHER    terminals, devices, what an older kernel cannot try: poll(2) first
 *
 * It is a hint for each direction, set on the first call: a number that has become another file
 * behind our back answers ENOTSOCK or EOPNOTSUPP and is looked at again. A stale PLAIN blocks a
 * thread whose P the monitor hands on; stream.c sees that it was taken, and forgets the hint.
 *
 * O_NONBLOCK and the timeouts are never stored and never changed: the kernel is asked when a call
 * is about to wait.
 */
#include "hook/hook_internal.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

#define MEMORY_DEVICES 1 /* their major number */

Hint fd_hints[FD_HINTS];

/* Only one whose counter is full makes a writer wait. */
static bool is_eventfd(int fd) {
    char path[32] = "/proc/self/fd/", link[32], digits[12];
    int n = 0, at = 14;
    do digits[n++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    while (n > 0) path[at++] = digits[--n];
    static const char name[] = "anon_inode:[eventfd]";
    return sys(SYS_readlinkat, AT_FDCWD, path, link, sizeof link, 0, 0) == sizeof name - 1 &&
           memcmp(link, name, sizeof name - 1) == 0;
}

int kind_look(int fd, int dir) {
    struct stat st;
    if (fstat(fd, &st) != 0) return -get_errno();
    bool plain = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) ||
                 (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEMORY_DEVICES);
    kind_set_both(fd, S_ISSOCK(st.st_mode) ? KIND_SOCKET : plain ? KIND_PLAIN : KIND_NOWAIT);
    if ((st.st_mode & S_IFMT) == 0 && is_eventfd(fd)) kind_set(fd, DIR_WRITE, KIND_PLAIN);
    if ((unsigned)fd < FD_HINTS) return kind_hint(fd, dir);
    return S_ISSOCK(st.st_mode) ? KIND_SOCKET : plain ? KIND_PLAIN : KIND_NOWAIT;
}

bool waits(int fd) {
    long flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    return flags < 0 || !(flags & O_NONBLOCK);
}

long poll_fd(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    return poll_ready(&p, 1);
}

int64_t deadline_after(int64_t ns) {
    int64_t when = time_after(gort_now(), ns > 0 ? ns : 0);
    return when == NEVER ? GORT_FOREVER : when;
}

int64_t socket_deadline(int fd, int option) {
    struct timeval tv = {0, 0};
    socklen_t len = sizeof tv;
    if (getsockopt(fd, SOL_SOCKET, option, &tv, &len) != 0 || (tv.tv_sec == 0 && tv.tv_usec == 0))
        return GORT_FOREVER;
    if (tv.tv_sec > GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER;
    return deadline_after((int64_t)tv.tv_sec * GORT_SEC + tv.tv_usec * GORT_US);
}

bool valid_time(const struct timespec *ts) { return ts->tv_nsec >= 0 && ts->tv_nsec < GORT_SEC; }

int64_t clock_deadline(clockid_t clock, const struct timespec *at) {
    struct timespec now;
    clock_gettime(clock, &now);
    int64_t seconds = (int64_t)at->tv_sec - now.tv_sec;
    if (seconds > GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER;
    if (seconds < -(GORT_FOREVER / GORT_SEC / 2)) return 0;
    int64_t left = seconds * GORT_SEC + at->tv_nsec - now.tv_nsec;
    return left <= 0 ? 0 : deadline_after(left);
}
