/*
 * What is remembered of a descriptor. Part of hook_internal.h; fdkind.c has the essay on kinds,
 * optimistic.c on what is HOT.
 *
 * A Hint is 25 bytes for each number, atomic loads and stores of its parts, and nothing but hints:
 * where one has become wrong behind our back, a call is refused by the kernel and looked at again,
 * or a thread waits for once and the monitor takes its P. So a number that is born costs one store,
 * and one that is closed one look.
 *
 * Pipes and eventfds. Whether a read finds something is known where all of it comes by way of the
 * hook: the two ends of a pipe know each other (peer, both ways), the one counts the bytes that
 * were written, the other those that were read. While more were written than read, a read does not
 * wait; nor does a write, while there is room (pipe_room). Such a call is made as it is, by read(2)
 * or write(2). Any other is tried as of old; a writer whose tries have all found room is HOT then
 * (HINT_ROOM), and counts on. Whoever learns that it was wrong (a child reads from the same pipe, a
 * plain thread does) no longer trusts the pipe (hot_slept). A reader takes its bytes before its
 * call, so that two of them do not both rely on one message. Of an eventfd, peer says that it was
 * written since it was last read.
 *
 * Lives. `life` is no hint: it goes on with every close of the number, before the kernel is asked
 * to close it, on whatever thread. A call that has done something that others can see (a part of a
 * write), or has slept, and goes on with the number takes it before and compares it after that: it
 * is the same file still, or the call ends with what it has. Then `used` is set, and every later
 * close comes by way of gort_close, which waits for calls. (One that sleeps as it was made has not
 * set it: optimistic.c.) That the two sides do not both miss each other (a call that goes on: used,
 * then life; a close: life, then used) is a Dekker pair: each has a full fence in between
 * (note_known, life_ends). A call that has done nothing and not slept need not care: nobody can
 * tell that it has not begun later, on the number's next file.
 *
 * A number that is being closed has its next life already and its last file still: a call that
 * begins there must not take the one for the other's. `over` follows `life` when the kernel has
 * closed it, or has given it anew (hint_born), and a call that finds them apart waits for that
 * before it does anything (life_awaited): it has not begun then, and what it finds afterwards is
 * EBADF or the next file, as for one that came later. EBADF at once would be wrong: the next owner
 * may have the number, from where the hook does not see it, while the thread that closes has not
 * come back from the kernel. That may take long (a socket that lingers). So after a while the call
 * is made without a life, and if it moves a part, that is its result. (A thread that is cancelled
 * in close(2), or a child of vfork that is killed there, leaves them apart, up to the number's next
 * birth or close. Such a child's closes count as ours where the runtime does not know the number: a
 * write that goes on at that moment ends with its part.)
 */
#ifndef FDHINTS_H
#define FDHINTS_H

/* From HOT on: called as it is where something is expected there. */
enum {
    KIND_UNKNOWN,
    KIND_SOCKET,
    KIND_NOWAIT,
    KIND_OTHER,
    KIND_PLAIN,
    KIND_HOT,
    KIND_PIPE,
    KIND_EVENT
};
typedef struct Hint { /* half a cache line */
    union {
        struct { /* kind and mistakes: for each direction */
            uint8_t none;
            uint8_t flags; /* HINT_...: of the number, for both */
            uint8_t kind[2];
            uint8_t mistakes[2]; /* how often HOT was wrong */
            uint16_t peer;       /* a pipe's other end; 0: none */
        };
        uint64_t what;
    };
    union {
        uint32_t streak[2]; /* tries since the last that would have blocked */
        uint64_t streaks;
    };
    uint32_t life, over; /* the core's (DescNote), */
    uint8_t used;        /* too: it knows the number */
} ALIGNED(32) Hint;
_Static_assert(sizeof(Hint) == sizeof(DescNote) &&
                   offsetof(Hint, used) == offsetof(DescNote, used) &&
                   offsetof(Hint, life) == offsetof(DescNote, life) &&
                   offsetof(Hint, over) == offsetof(DescNote, over),
               "");
enum {
    HINT_BORN = 1,     /* a socket made here: the runtime knows nothing of an earlier file */
    HINT_MESSAGES = 2, /* a socket without connections: connect does not wait */
    HINT_NONBLOCK = 4, /* its owner has set O_NONBLOCK */
    HINT_OPENED = 8,   /* by open: HOT from the start, as most files never make anybody wait */
    HINT_FRESH = 16,   /* nobody has waited on it yet: hint_settle() */
    HINT_ROOM = 32     /* a pipe's writer: it has not blocked for long */
};
/* `what` of a new number. */
#define WHAT(flags, reading, writing) \
    ((uint64_t)(flags) << 8 | (uint64_t)(reading) << 16 | (uint64_t)(writing) << 24)
#define WHAT_PEER(fd) ((uint64_t)(fd) << 48)
#define WHAT_COPIED (((uint64_t)1 << 48) - 1) /* all but peer */

#define FD_HINTS DESC_NOTES
extern Hint fd_hints[FD_HINTS];

INLINE int kind_hint(int fd, int dir) {
    return (unsigned)fd < FD_HINTS ? load_rlx(&fd_hints[fd].kind[dir]) : KIND_UNKNOWN;
}
INLINE void kind_set(int fd, int dir, int kind) {
    if ((unsigned)fd < FD_HINTS && load_rlx(&fd_hints[fd].kind[dir]) != kind)
        store_rlx(&fd_hints[fd].kind[dir], (uint8_t)kind);
}
INLINE void kind_set_both(int fd, int kind) {
    kind_set(fd, DIR_READ, kind);
    kind_set(fd, DIR_WRITE, kind);
}
INLINE int flags_hint(int fd) {
    return (unsigned)fd < FD_HINTS ? load_rlx(&fd_hints[fd].flags) : 0;
}
INLINE void flags_add(int fd, int flags) {
    if ((unsigned)fd < FD_HINTS)
        store_rlx(&fd_hints[fd].flags, (uint8_t)(fd_hints[fd].flags | flags));
}
INLINE void flags_take(int fd, int flags) {
    if ((unsigned)fd < FD_HINTS)
        store_rlx(&fd_hints[fd].flags, (uint8_t)(fd_hints[fd].flags & ~flags));
}

INLINE DescNote *note_at(int fd) { return (DescNote *)(void *)&fd_hints[fd]; }

/* The life of the number, for a call that begins on a goroutine; 0: it has none, since it is being
 * closed, and goes on with none. A number beyond the table is always `used`. */
COLD uint32_t life_waits(int fd); /* until it is not being closed any more */
INLINE uint32_t life_of(int fd) {
    if (unlikely((unsigned)fd >= FD_HINTS)) return 1;
    uint32_t life = note_life(note_at(fd));
    return likely(life != 0) ? life : life_waits(fd);
}
INLINE bool life_goes_on(int fd, uint32_t life) {
    return (unsigned)fd >= FD_HINTS || load_rlx(&fd_hints[fd].life) == life;
}
/* Another number for the file of that life; -EBADF: it is over. The number may have been another's
 * at the copy, but then its life was over before. */
INLINE long own_number(int fd, uint32_t life) {
    long own = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
    if (own < 0 || life_goes_on(fd, life)) return own;
    sys(SYS_close, own, 0, 0, 0, 0, 0);
    return -EBADF;
}
/* Around every close of a number of the table. */
INLINE uint32_t life_ends(int fd) {
    uint32_t life = note_ends(note_at(fd));
    fence_full(); /* then `used` is read: see above */
    return life;
}
INLINE void life_over(int fd, uint32_t life) { note_over(note_at(fd), life); }

/* The number is another file from now on, of which this is known. One that somebody waits on was
 * closed unseen. */
COLD bool hint_stale(int fd); /* false: a child's number, of which nothing is noted */
/* who closed it last has not said that it is over, or it never had a life */
COLD void life_begins(int fd);
INLINE void hint_born(int fd, uint64_t what) {
    if (unlikely((unsigned)fd >= FD_HINTS)) return;
    Hint *h = &fd_hints[fd];
    if (unlikely(load_rlx(&h->used)) && !hint_stale(fd)) return;
    if (unlikely(load_rlx(&h->over) + 1 != load_rlx(&h->life))) life_begins(fd);
    store_rlx(&h->what, what | WHAT(HINT_FRESH, 0, 0));
    store_rlx(&h->streaks, 0);
}
/* The number is given back. */
INLINE void hint_forget(Hint *h) {
    store_rlx(&h->what, 0);
    store_rlx(&h->streaks, 0);
}
/* About to park on it: what the runtime has in its table may be of a number that was closed behind
 * its back. */
COLD void hint_settle_fresh(int fd);
INLINE void hint_settle(int fd) {
    if (flags_hint(fd) & HINT_FRESH) hint_settle_fresh(fd);
}
int kind_look(int fd, int dir); /* asks the kernel; -errno */
bool waits(int fd);             /* the caller wants to wait: it has not set O_NONBLOCK */

/* ---- what is called as it is (optimistic.c) -------------------------------------------------- */

/* Counts a NOWAIT try that has not blocked, or has. */
#define HOT_AFTER 32
#define HOT_CHECK 256
NOINLINE void hot_on(int fd, int dir);
NOINLINE void hot_off(int fd, int dir);
INLINE void hot_count(int fd, int dir) {
    if ((unsigned)fd >= FD_HINTS) return;
    uint32_t n = load_rlx(&fd_hints[fd].streak[dir]) + 1;
    store_rlx(&fd_hints[fd].streak[dir], n);
    if (unlikely(n % HOT_AFTER == 0)) hot_on(fd, dir);
}
/* May a call that is not expected to wait be made as it is? Not while another one waits so. */
INLINE bool chance(M *m) { return load_rlx(known.taken) == 0 && load_rlx(&m->attn) == 0; }
/* HOT: is this one to be called as it is? */
INLINE bool hot_now(M *m, int fd, int dir) {
    uint32_t n = load_rlx(&fd_hints[fd].streak[dir]) + 1;
    store_rlx(&fd_hints[fd].streak[dir], n);
    return n % HOT_CHECK != 0 && chance(m);
}
/* Called as it is; the monitor's count was `looks` before. Three looks later: it has slept. */
COLD void hot_slept(M *m, int fd, int dir);
INLINE bool was_taken(M *m) { return unlikely(load_rlx(&m->attn) & ATTN_TAKEN); }
INLINE bool slept(M *m, uint32_t looks) {
    return was_taken(m) || unlikely(load_rlx(known.looks) - looks >= 3);
}
INLINE void hot_done(M *m, int fd, int dir, uint32_t looks) {
    if (slept(m, looks)) hot_slept(m, fd, dir);
}

/* ---- pipes and eventfds --------------------------------------------------------------------- */

#define PIECE 4096 /* PIPE_BUF */
#define PIPE_PART (4 * PIECE)
#define PIPE_ALL (16 * PIECE)

/* The other end; NULL: it is gone. */
INLINE Hint *pipe_peer(int fd) {
    uint32_t peer = load_rlx(&fd_hints[fd].peer);
    return peer != 0 && load_rlx(&fd_hints[peer].peer) == (uint32_t)fd ? &fd_hints[peer] : NULL;
}
/* Counted at each end in the word that its own tries do not use. */
INLINE uint32_t *pipe_read(Hint *reader) { return &reader->streak[DIR_WRITE]; }
INLINE uint32_t *pipe_written(Hint *writer) { return &writer->streak[DIR_READ]; }
INLINE void add_plain(uint32_t *n, uint32_t more) { store_rlx(n, load_rlx(n) + more); }

/* Of a kind PIPE. There are bytes: n are taken, and pipe_took() says how many it was. */
INLINE bool pipe_take(int fd, size_t n) {
    Hint *writer = pipe_peer(fd), *h = &fd_hints[fd];
    if (writer == NULL || (int32_t)(load_rlx(pipe_written(writer)) - load_rlx(pipe_read(h))) <= 0)
        return false;
    add_plain(pipe_read(h), (uint32_t)n);
    return true;
}
INLINE void pipe_took(int fd, size_t n, long r) {
    add_plain(pipe_read(&fd_hints[fd]), (uint32_t)(r > 0 ? r : 0) - (uint32_t)n);
}
/* There is room for n bytes. A pipe has 16 pages. A write begins a new one unless all that does not
 * fill a page fits into the last, so two that follow each other hold more than one page together,
 * but for the first, which may be read in part: PIPE_PART bytes are in 10 at most, and as many need
 * 5. Where a user has very many pipes the kernel makes smaller ones: that is found out. */
INLINE bool pipe_room(int fd, size_t n) {
    Hint *reader = pipe_peer(fd);
    if (reader == NULL || n > PIPE_ALL) return false;
    uint32_t in = load_rlx(pipe_written(&fd_hints[fd])) - load_rlx(pipe_read(reader));
    return in == 0 || (in <= PIPE_PART && n <= PIPE_PART);
}
INLINE void pipe_put(int fd, long r) {
    add_plain(pipe_written(&fd_hints[fd]), (uint32_t)(r > 0 ? r : 0));
}
/* So much was moved (or -errno), whatever the kind. */
INLINE void pipe_moved(int fd, int dir, long r) {
    if (r <= 0 || (unsigned)fd >= FD_HINTS || load_rlx(&fd_hints[fd].kind[dir]) != KIND_PIPE)
        return;
    add_plain(dir == DIR_READ ? pipe_read(&fd_hints[fd]) : pipe_written(&fd_hints[fd]),
              (uint32_t)r);
}
/* Of a kind EVENT: it was written, and not read since. */
INLINE bool event_take(int fd) {
    bool there = load_rlx(&fd_hints[fd].peer) != 0;
    if (there) store_rlx(&fd_hints[fd].peer, 0);
    return there;
}
INLINE void event_put(int fd) { store_rlx(&fd_hints[fd].peer, 1); }

#endif
