/*
 * Numbers that libc closes itself: fclose, freopen, and the many of close_range and closefrom.
 *
 * libc's own close is not the hook's. So what is known of the number is ended before (close.h), and whoever waits on it gets
 * EBADF; then libc does the rest. Of a range every number that the runtime knows is closed first, one by one.
 */
#include "inside.h"

#include <stdio.h>

/* Before libc closes it. */
static void shut(int fd) {
    if (fd < 0 || core == NULL) return;
    int how = core->may_close();
    if (how == CLOSE_CHILD) return;
    if ((unsigned)fd < KINDS) {
        life_ends(&fd_hints[fd]);
        if (!load_rlx(&fd_hints[fd].used)) hint_forget(&fd_hints[fd]), how = CLOSE_BEHIND;
    }
    if (how != CLOSE_NOW) return;
    if (here()) {
        Stay s;
        stay(&s);
        core->shut(fd);
        stay_end(&s);
    } else {
        core->shut(fd);
    }
    if ((unsigned)fd < KINDS) hint_forget(&fd_hints[fd]);
}

static void shut_file(FILE *f) {
    int e = get_errno();
    if (f) shut(fileno(f)); /* -1: a file in memory */
    set_errno(e);
}

HOOK int fclose(FILE *f) {
    shut_file(f);
    return libc(fclose)(f);
}

/* Its number becomes another file. */
HOOK FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict f) {
    shut_file(f);
    return libc(freopen)(path, mode, f);
}
HOOK FILE *hook_freopen64(const char *restrict path, const char *restrict mode, FILE *restrict f) __asm__("freopen64")
    __attribute__((alias("freopen")));

/* Those that the runtime knows of; all the others begin a new life. A child's are its own. */
static void close_known_ones(unsigned first, unsigned last) {
    if (core == NULL || core->may_close() == CLOSE_CHILD) return;
    for (unsigned fd = first; fd <= last && fd < KINDS; fd++) {
        Hint *h = &fd_hints[fd];
        if (load_rlx(&h->used)) close((int)fd);
        else if (load_rlx(&h->life) != 0 || load_rlx(&h->what) != 0) {
            life_ends(h);
            hint_forget(h);
        }
    }
}

HOOK int hook_close_range(unsigned first, unsigned last, int flags) __asm__("close_range");
HOOK int hook_close_range(unsigned first, unsigned last, int flags) {
    if (flags == 0) close_known_ones(first, last); /* else they stay open, or the table is a copy */
    return (int)returned(sys(SYS_close_range, first, last, flags, 0, 0, 0));
}

HOOK void hook_closefrom(int first) __asm__("closefrom");
HOOK void hook_closefrom(int first) {
    if (first < 0) first = 0;
    close_known_ones((unsigned)first, ~0u);
    libc(closefrom)(first);
}
