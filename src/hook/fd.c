/*
 * Numbers that change hands: close, dup, dup2, dup3; and fcntl, for its locks.
 *
 * A number that the runtime knows is closed by gort_close, so that nothing of it is taken for its
 * next owner's. Whoever waits on it in a hooked call gets EBADF. The runtime says so in the number's hint (desc_note):
 * whatever else is closed has been looked at once.
 *
 * fcntl needs no care for O_NONBLOCK, which the hook never changes (kind.c); it is noted when it is
 * set, as a hint that a call will not wait.
 */
#include "inside.h"

/* A child of vfork has our memory and descriptors of its own: the runtime's are not to be touched. */
static bool is_child(M *m) { return (int)sys(SYS_gettid, 0, 0, 0, 0, 0, 0) != m->tid; }

static COLD int close_known(int fd) {
    M *m = here();
    if (m == NULL || is_child(m) || !desc_known(known.descs, fd)) return libc(close)(fd);
    if ((unsigned)fd < KINDS) hint_forget(&fd_hints[fd]);
    Stay s;
    stay(&s);
    return (int)result(&s, gort_close(fd));
}

HOOK int close(int fd) {
    if (unlikely((unsigned)fd >= KINDS)) return close_known(fd);
    Hint *h = &fd_hints[fd];
    if (!runner(close)) {
        hint_forget(h);
        return libc(close)(fd);
    }
    if (unlikely(load_rlx(&h->used))) return close_known(fd);
    hint_forget(h);
    return (int)returned(sys(SYS_close, fd, 0, 0, 0, 0, 0));
}

static NOINLINE void forget(int fd) {
    M *m = here();
    if (m == NULL || is_child(m)) return;
    Stay s;
    stay(&s);
    core->forget(fd);
    stay_end(&s);
}

COLD void settle_fresh(int fd) {
    flags_take(fd, HINT_FRESH);
    if (!load_rlx(&fd_hints[fd].used) && desc_known(known.descs, fd)) forget(fd);
}

/* Two numbers for one pipe or eventfd: its ends no longer see all that is moved. */
static COLD void unpair(int fd) {
    if (kind_hint(fd, READING) >= KIND_PIPE) kind_set(fd, READING, KIND_NOWAIT);
    if (kind_hint(fd, WRITING) >= KIND_PIPE) kind_set(fd, WRITING, kind_hint(fd, WRITING) == KIND_EVENT ? KIND_PLAIN : KIND_NOWAIT);
    store_rlx(&fd_hints[fd].peer, 0);
}

/* fd, of a bare call, is the same file as `from` from now on. */
INLINE int copied(long fd, int from) {
    if (unlikely(fd < 0)) return (int)returned(fd);
    uint64_t what = 0;
    if (likely((unsigned)from < KINDS)) {
        if (unlikely(kind_hint(from, READING) >= KIND_PIPE || kind_hint(from, WRITING) >= KIND_PIPE)) unpair(from);
        what = load_rlx(&fd_hints[from].what) & WHAT_COPIED;
    }
    hint_born((int)fd, what);
    return (int)fd;
}

/* Onto a number that may be open: what the runtime knew about that is over. */
static int copied_to(long fd, int from) {
    if (fd >= 0 && unlikely(fd < KINDS ? load_rlx(&fd_hints[fd].used) : desc_known(known.descs, (int)fd))) forget((int)fd);
    return copied(fd, from);
}

HOOK int dup(int fd) { return runner(dup) ? copied(sys(SYS_dup, fd, 0, 0, 0, 0, 0), fd) : libc(dup)(fd); }

HOOK int dup2(int fd, int to) {
    if (!runner(dup2) || fd == to) return libc(dup2)(fd, to);
#ifdef SYS_dup2
    return copied_to(sys(SYS_dup2, fd, to, 0, 0, 0, 0), fd);
#else
    return copied_to(sys(SYS_dup3, fd, to, 0, 0, 0, 0), fd);
#endif
}

HOOK int dup3(int fd, int to, int flags) {
    return runner(dup3) ? copied_to(sys(SYS_dup3, fd, to, flags, 0, 0, 0), fd) : libc(dup3)(fd, to, flags);
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
    if (!here()) return libc(fcntl)(fd, cmd, arg);
    Stay s;
    stay(&s);
    r = (int)gort_blocking(lock_blocking, &l);
    stay_end(&s);
    return r;
}

/* The owner has set or taken O_NONBLOCK, on whatever thread. With it, whatever is no socket is called as
 * it is. */
static int flags_set(int fd, long flags, long r) {
    if (unlikely(flags & O_DIRECT) && (unsigned)fd < KINDS) unpair(fd); /* a pipe of packets */
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
    if (cmd == F_SETPIPE_SZ && (unsigned)fd < KINDS) unpair(fd); /* a page that is half read has no room */
    if ((cmd != F_SETLKW && cmd != F_OFD_SETLKW && cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC) || !runner(fcntl))
        return libc(fcntl)(fd, cmd, arg);
    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) return copied(sys(SYS_fcntl, fd, cmd, arg, 0, 0, 0), fd);
    return lock_file(fd, cmd, arg);
}
_Static_assert(F_GETFD == 1 && F_SETFD == 2 && F_GETFL == 3 && F_SETFL == 4 && F_GETLK == 5 && F_SETLK == 6, "");

/* What programs with 64-bit offsets call. */
HOOK int hook_fcntl64(int fd, int cmd, void *arg) __asm__("fcntl64") __attribute__((alias("fcntl")));
