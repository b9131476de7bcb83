/* Numbers that libc closes itself: fclose, freopen, and the many of close_range and closefrom. The
 * hook first ends what is known of the number (io/close.h), which wakes calls that wait on it with
 * EBADF; then libc closes. Of a range, the hook closes each number that it has seen by itself. */
#include "hook/hook_internal.h"

/* Before libc closes fd: its next life, for shut_over; 0: nothing to end. */
static uint32_t shut_number(int fd) {
    if (fd < 0 || core == NULL) return 0;
    int how = core->may_close();
    if (how == CLOSE_CHILD) return 0;
    bool noted = fd < FD_HINTS;
    uint32_t life = noted ? life_ends(fd) : 0;
    bool used = !noted || load_rlx(&fd_hints[fd].used);
    if (used && how == CLOSE_NOW) staying_if(here(), core->shut(fd));
    if (noted && (!used || how == CLOSE_NOW)) hint_forget(&fd_hints[fd]);
    return life;
}
static void shut_over(int fd, uint32_t life) {
    if (life != 0) life_over(fd, life);
}

static uint32_t shut_file(FILE *f, int *fd) {
    int e = get_errno();
    *fd = f ? fileno(f) : -1; /* -1: none, or a file in memory */
    uint32_t life = shut_number(*fd);
    set_errno(e);
    return life;
}

HOOK int fclose(FILE *f) {
    int fd;
    uint32_t life = shut_file(f, &fd);
    int r = libc(fclose)(f);
    shut_over(fd, life);
    return r;
}

HOOK FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict f) {
    int fd;
    uint32_t life = shut_file(f, &fd);
    FILE *r = libc(freopen)(path, mode, f);
    shut_over(fd, life);
    return r;
}
HOOK __typeof__(freopen) hook_freopen64 __asm__("freopen64") __attribute__((alias("freopen")));

static bool is_seen(unsigned fd) {
    const Hint *h = &fd_hints[fd];
    return load_rlx(&h->used) || load_rlx(&h->life) != 0 || load_rlx(&h->what) != 0;
}
static long close_between(unsigned first, unsigned last) {
    return sys(SYS_close_range, first, last, 0, 0, 0, 0);
}

/* Closes each number that the hook has seen as close does, those between by the kernel. None is
 * closed twice: it may be another file by then. -errno. */
static long close_each(unsigned first, unsigned last) {
    long r = close_between(~0u, ~0u); /* is there such a call? */
    if (r < 0) return r;
    /* a child's numbers are its own */
    if (core == NULL || core->may_close() == CLOSE_CHILD) return close_between(first, last);
    unsigned next = first;
    for (unsigned fd = first; fd <= last && fd < FD_HINTS; fd++) {
        if (!is_seen(fd)) continue;
        if (next < fd) close_between(next, fd - 1);
        close((int)fd);
        next = fd + 1;
    }
    return next > last ? 0 : close_between(next, last);
}

HOOK int hook_close_range(unsigned first, unsigned last, int flags) __asm__("close_range");
HOOK int hook_close_range(unsigned first, unsigned last, int flags) {
    int e = get_errno();
    if (flags != 0 || first > last) /* CLOEXEC, a copy of the table, or an error */
        return (int)returned(sys(SYS_close_range, first, last, flags, 0, 0, 0));
    long r = close_each(first, last);
    set_errno(e); /* a number that was not open */
    return (int)returned(r);
}

HOOK void hook_closefrom(int first) __asm__("closefrom");
HOOK void hook_closefrom(int first) {
    int e = get_errno();
    if (first < 0) first = 0;
    if (close_each((unsigned)first, ~0u) < 0) libc(closefrom)(first);
    set_errno(e);
}
