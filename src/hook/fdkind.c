/* What a descriptor is, asked of the kernel. The kinds: fdkind.h. */
#include "hook/hook_internal.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MEMORY_DEVICES 1 /* their major number */

Hint fd_hints[FD_HINTS];

/* name: "[eventfd]" and its like. */
static bool is_anonymous(int fd, const char *name) {
    char path[32] = "/proc/self/fd/", link[32], digits[12];
    int n = 0, at = 14;
    do digits[n++] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    while (n > 0) path[at++] = digits[--n];
    static const char first[] = "anon_inode:";
    size_t skip = sizeof first - 1, len = skip + strlen(name);
    return sys(SYS_readlinkat, AT_FDCWD, path, link, sizeof link, 0, 0) == (long)len &&
           memcmp(link, first, skip) == 0 && memcmp(link + skip, name, len - skip) == 0;
}

/* A write to one waits only where its counter is full, and there is no way to try: OTHER. */
bool is_eventfd(int fd) { return is_anonymous(fd, "[eventfd]"); }

FdKind kind_look(int fd, int dir) {
    struct stat st;
    if (fstat(fd, &st) != 0) return KIND_CLOSED;
    bool plain = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) ||
                 (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEMORY_DEVICES);
    FdKind kind = S_ISSOCK(st.st_mode) ? KIND_SOCKET : plain ? KIND_PLAIN : KIND_NOWAIT;
    kind_set_both(fd, kind);
    if (S_ISCHR(st.st_mode) && !plain && is_terminal(fd)) flags_add(fd, HINT_TERMINAL);
    if ((st.st_mode & S_IFMT) == 0 && is_anonymous(fd, "[signalfd]")) flags_add(fd, HINT_SIGNALS);
    if ((st.st_mode & S_IFMT) == 0 && is_eventfd(fd)) {
        kind_set(fd, DIR_WRITE, KIND_OTHER);
        if (dir == DIR_WRITE) return KIND_OTHER;
    }
    return (unsigned)fd < FD_HINTS ? kind_hint(fd, dir) : kind;
}

bool caller_waits(int fd) {
    long flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    return flags < 0 || !(flags & O_NONBLOCK);
}
