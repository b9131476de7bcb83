/*
 * What a descriptor is, and what its owner wants of it.
 *
 * The kind decides how a call is tried without blocking: sockets by MSG_DONTWAIT, pipes and their
 * like by RWF_NOWAIT. Regular files are called as announced system calls, whatever is left after
 * asking poll. It is a hint, set on the first call: a number that has become another file behind
 * our back answers ENOTSOCK or EOPNOTSUPP and is looked at again. The one mistake that goes
 * unnoticed (a stale "regular file") blocks a thread whose P the monitor hands on, and no more.
 *
 * O_NONBLOCK and the timeouts are never stored and never changed: the kernel is asked when a call
 * is about to wait.
 */
#include "inside.h"

#include <sys/stat.h>
#include <sys/time.h>

uint8_t kinds[KINDS];

int kind_look(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) return -1;
    int kind = S_ISSOCK(st.st_mode)                                                     ? KIND_SOCKET
               : S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) ? KIND_FILE
                                                                                        : KIND_NOWAIT;
    kind_set(fd, kind);
    return kind;
}

bool waits(int fd) {
    int flags = libc(fcntl)(fd, F_GETFL);
    return flags < 0 || !(flags & O_NONBLOCK);
}

int64_t after(int64_t ns) {
    int64_t now = gort_now();
    return ns < 0 ? now : ns > GORT_FOREVER - now ? GORT_FOREVER : now + ns;
}

int64_t socket_deadline(int fd, int option) {
    struct timeval tv = {0, 0};
    socklen_t len = sizeof tv;
    if (getsockopt(fd, SOL_SOCKET, option, &tv, &len) != 0 || (tv.tv_sec == 0 && tv.tv_usec == 0)) return GORT_FOREVER;
    if (tv.tv_sec > GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER;
    return after((int64_t)tv.tv_sec * GORT_SEC + tv.tv_usec * GORT_US);
}

bool valid_time(const struct timespec *ts) { return ts->tv_nsec >= 0 && ts->tv_nsec < GORT_SEC; }

int64_t deadline_of(clockid_t clock, const struct timespec *at) {
    struct timespec now;
    clock_gettime(clock, &now);
    int64_t seconds = (int64_t)at->tv_sec - now.tv_sec;
    if (seconds > GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER;
    if (seconds < -(GORT_FOREVER / GORT_SEC / 2)) return 0;
    int64_t left = seconds * GORT_SEC + at->tv_nsec - now.tv_nsec;
    return left <= 0 ? 0 : after(left);
}
