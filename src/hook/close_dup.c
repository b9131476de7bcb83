/* Numbers that change hands: close, dup, dup2, dup3; and fcntl, for its locks and O_NONBLOCK. A
 * number that the runtime knows (`used` in its hint) is closed by gort_close on every thread, and
 * so is the one that dup2 replaces: nothing that the runtime keeps of it is taken for its next
 * owner's, and a hooked call that waits on it gets EBADF. Any other costs one look at its hint. */
#include "hook/hook_internal.h"

/* In a signal handler, without the runtime's locks: `life` tells waiters, and the monitor wakes. */
static int close_behind(int fd) {
    if ((unsigned)fd >= FD_HINTS) return libc(close)(fd);
    uint32_t life = life_ends(fd);
    int r = libc(close)(fd);
    life_over(fd, life);
    core->owe_number(fd);
    return r;
}

static COLD int close_known(int fd) {
    int how = core->may_close();
    if (how == CLOSE_BEHIND) return close_behind(fd);
    if (how != CLOSE_NOW) return libc(close)(fd);
    if ((unsigned)fd < FD_HINTS) hint_forget(&fd_hints[fd]);
    return (int)returned(staying_if(here(), gort_close(fd)));
}

/* After life_ends: life_over has to follow, even where another thread does the close. */
static COLD int close_known_since(int fd, uint32_t life) {
    int r = close_known(fd);
    life_over(fd, life);
    return r;
}

/* `used` is read first so that a child unknown to the hook does not end the life of a number that
 * the runtime knows, and again after life_ends, since a call may have set it meanwhile. */
HOOK int close(int fd) {
    if (unlikely((unsigned)fd >= FD_HINTS)) return core ? close_known(fd) : libc(close)(fd);
    Hint *h = &fd_hints[fd];
    if (unlikely(load_rlx(&h->used))) return close_known(fd);
    M *m = runner(close);
    if (m == NULL && vforked()) return libc(close)(fd);
    uint32_t life = life_ends(fd);
    if (unlikely(load_rlx(&h->used))) return close_known_since(fd, life);
    hint_forget(h);
    int r = m ? (int)returned(sys(SYS_close, fd, 0, 0, 0, 0, 0)) : libc(close)(fd);
    life_over(fd, life);
    return r;
}

static NOINLINE void forget_here(int fd) {
    if (!here()) return;
    bool mine = stay();
    core->forget(fd);
    stay_end(mine);
}

COLD bool hint_stale(int fd) {
    if (hook_in_child()) return false;
    life_over(fd, life_ends(fd));
    forget_here(fd);
    return true;
}

COLD uint32_t life_waits(int fd) { return staying_if(here(), core->life_awaited(fd)); }

/* The kernel has just given the number, so its last close is over. */
COLD void life_begins(int fd) {
    uint32_t life = load_rlx(&fd_hints[fd].life);
    if (life != 0 && core->may_close() != CLOSE_CHILD) life_over(fd, life);
}

COLD void hint_settle_fresh(int fd) {
    flags_take(fd, HINT_FRESH);
    if (!load_rlx(&fd_hints[fd].used) && desc_known(known.descs, fd)) forget_here(fd);
}

/* Ends the counting: what a pipe or eventfd with two numbers holds changes unseen. */
static COLD void unpair(int fd) {
    if (kind_is_counted(kind_hint(fd, DIR_READ))) kind_set(fd, DIR_READ, KIND_NOWAIT);
    if (kind_is_counted(kind_hint(fd, DIR_WRITE)))
        kind_set(fd, DIR_WRITE, kind_hint(fd, DIR_WRITE) == KIND_EVENT ? KIND_OTHER : KIND_NOWAIT);
    store_rlx(&fd_hints[fd].peer, 0);
}

/* fd, the result of a bare call, is the same file as `from`. */
INLINE int copied(long fd, int from) {
    if (unlikely(fd < 0)) return (int)returned(fd);
    uint64_t what = 0;
    if (likely((unsigned)from < FD_HINTS)) {
        if (unlikely(kind_is_counted(kind_hint(from, DIR_READ)) ||
                     kind_is_counted(kind_hint(from, DIR_WRITE))))
            unpair(from);
        what = load_rlx(&fd_hints[from].what) & WHAT_COPIED;
    }
    hint_born((int)fd, what);
    return (int)fd;
}

/* Onto a number that the runtime knows: the runtime forgets that file. */
static COLD int replaced(int fd, int to, int flags) {
    int r = (int)returned(staying_if(here(), core->replace(fd, to, flags)));
    return r < 0 ? r : copied(r, fd);
}

static bool is_known(int fd) {
    return (unsigned)fd < FD_HINTS ? load_rlx(&fd_hints[fd].used) : core != NULL;
}

INLINE int dup_result(M *m, int fd, int to, long r) {
    if (likely(m != NULL)) return copied(r, fd);
    if (r >= 0 && (unsigned)to < FD_HINTS) hint_forget(&fd_hints[to]);
    return (int)returned(r);
}

/* The runtime may know `to`. life: of life_ends; 0: not called yet. Where the runtime does not
 * close `to`, its life ends here, but for a child's. */
static COLD int dup_known(M *m, int fd, int to, int flags, uint32_t life) {
    bool used = is_known(to);
    int how = used ? core->may_close() : CLOSE_BEHIND;
    if (how == CLOSE_BEHIND && life == 0 && (unsigned)to < FD_HINTS) life = life_ends(to);
    long r = how == CLOSE_NOW ? replaced(fd, to, flags) : sys(SYS_dup3, fd, to, flags, 0, 0, 0);
    if (life != 0) life_over(to, life);
    if (life != 0 && used && how == CLOSE_BEHIND) core->owe_number(to);
    if (how == CLOSE_NOW) return (int)r;
    return how == CLOSE_CHILD ? (int)returned(r) : dup_result(m, fd, to, r);
}

/* A dup that fails does not end `to`'s life. The kernel is asked only about an unseen number. */
static NOINLINE bool is_closed(int fd) { return sys(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) < 0; }
INLINE bool dup_fails(int fd, int flags) {
    bool seen = likely((unsigned)fd < FD_HINTS) && likely(load_rlx(&fd_hints[fd].what) != 0);
    return unlikely(flags & ~O_CLOEXEC) || (!seen && is_closed(fd));
}

/* As close: `used` is read before life_ends, and after. */
INLINE int dup_to(M *m, int fd, int to, int flags) {
    if ((m == NULL && vforked()) || dup_fails(fd, flags))
        return (int)returned(sys(SYS_dup3, fd, to, flags, 0, 0, 0));
    if (unlikely((unsigned)to >= FD_HINTS || load_rlx(&fd_hints[to].used)))
        return dup_known(m, fd, to, flags, 0);
    uint32_t life = life_ends(to);
    if (unlikely(load_rlx(&fd_hints[to].used))) return dup_known(m, fd, to, flags, life);
    long r = sys(SYS_dup3, fd, to, flags, 0, 0, 0);
    life_over(to, life);
    return dup_result(m, fd, to, r);
}

HOOK int dup(int fd) {
    return runner(dup) ? copied(sys(SYS_dup, fd, 0, 0, 0, 0, 0), fd) : libc(dup)(fd);
}

HOOK int dup2(int fd, int to) {
    return fd == to ? libc(dup2)(fd, to) : dup_to(runner(dup2), fd, to, 0);
}
HOOK int dup3(int fd, int to, int flags) {
    return fd == to ? libc(dup3)(fd, to, flags) : dup_to(runner(dup3), fd, to, flags);
}

static int fcntl_lock(int fd, int cmd, void *arg) {
    int r = libc(fcntl)(fd, cmd == F_SETLKW ? F_SETLK : F_OFD_SETLK, arg);
    if (r == 0 || (errno != EAGAIN && errno != EACCES)) return r;
    return here() ? (int)libc_blocking(fcntl, fd, cmd, arg, 0, 0, 0) : libc(fcntl)(fd, cmd, arg);
}

/* O_NONBLOCK was set or cleared. With it, all but sockets are called as they are. */
static int flags_set(int fd, long flags, long r) {
    if (vforked()) return (int)returned(r);
    if (unlikely(flags & O_DIRECT) && (unsigned)fd < FD_HINTS) unpair(fd); /* a pipe of packets */
    bool set = flags & O_NONBLOCK;
    if (r < 0 || (!set && !(flags_hint(fd) & HINT_NONBLOCK))) return (int)returned(r);
    if (set) flags_add(fd, HINT_NONBLOCK);
    else flags_take(fd, HINT_NONBLOCK);
    for (int dir = DIR_READ; dir <= DIR_WRITE; dir++)
        if (kind_hint(fd, dir) != KIND_SOCKET) kind_set(fd, dir, set ? KIND_PLAIN : KIND_UNKNOWN);
    return (int)r;
}

/* For flags and for locks that do not wait, libc makes the bare call too. Declared with three
 * arguments: a variadic function's come in the same registers, but its prologue saves them all. */
HOOK int hook_fcntl(int fd, int cmd, void *arg) __asm__("fcntl");
HOOK int hook_fcntl(int fd, int cmd, void *arg) {
    if (likely(cmd >= F_GETFD && cmd <= F_SETLK)) {
        long r = sys(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
        return cmd == F_SETFL ? flags_set(fd, (long)arg, r) : (int)returned(r);
    }
    /* pipe_room counts on 16 pages */
    if (cmd == F_SETPIPE_SZ && (unsigned)fd < FD_HINTS && !vforked()) unpair(fd);
    if (!runner(fcntl)) return libc(fcntl)(fd, cmd, arg);
    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
        return copied(sys(SYS_fcntl, fd, cmd, arg, 0, 0, 0), fd);
    bool waits = cmd == F_SETLKW || cmd == F_OFD_SETLKW;
    return waits ? fcntl_lock(fd, cmd, arg) : libc(fcntl)(fd, cmd, arg);
}
_Static_assert(F_GETFD == 1 && F_SETFD == 2 && F_GETFL == 3 && F_SETFL == 4 && F_GETLK == 5 &&
                   F_SETLK == 6,
               "");

/* What programs with 64-bit offsets call. */
HOOK __typeof__(hook_fcntl) hook_fcntl64 __asm__("fcntl64") __attribute__((alias("fcntl")));
