/*
 * What the hook remembers of a descriptor. fdkind.h has the kinds, optimistic.c says what is HOT.
 *
 * A Hint is 25 bytes for each number; its parts are loaded and stored atomically. All but `life`
 * and `over` are hints: if one is wrong, the kernel refuses a call and the number is looked at
 * again, or a thread waits once and the monitor takes its P. So a new number costs one store, and a
 * close one look. A call that is about to wait asks the kernel for O_NONBLOCK and for timeouts.
 *
 * Pipes and eventfds. The two ends of a pipe know each other (peer); the writer counts the bytes
 * written, the reader those read. While more were written than read, a read does not wait; while
 * there is room (pipe_room), a write does not. Such a call is made as it is. Any other is tried by
 * RWF_NOWAIT, and a writer whose tries have all found room is HOT (HINT_ROOM). Children and plain
 * threads move bytes unseen: a call that waits after all ends the trust in its pipe (hot_slept). A
 * reader takes its bytes before its call, so that two readers do not rely on one message. An
 * eventfd's peer is 1 if it was written since it was last read.
 *
 * Lives. `life` grows with every close of the number, on any thread, before the kernel closes. A
 * call that goes on with the number after a visible effect (a part of a write) or a sleep sets
 * `used`, and compares `life` with its value at the beginning: in another life it ends with what it
 * has. Once `used` is set, every close goes by way of gort_close, which waits for calls. A close
 * stores `life`, then reads `used`: a Dekker pair with a full fence on each side (note_known,
 * life_ends), or a rest would go to the number's next file. A call without a visible effect might
 * as well have begun later; one that sleeps as it was made has not set `used` (optimistic.c).
 *
 * A number that is being closed has its next life already and its old file still. `over` follows
 * `life` when the kernel has closed the number, or has given it anew (hint_born). A call that finds
 * them apart waits before it does anything (life_awaited), and then finds EBADF or the next file.
 * EBADF at once would be wrong: the next owner may have the number before the closing thread is
 * back from the kernel. A close may take long (a socket that lingers), so after a while the call is
 * made without a life, and if it moves a part, that is its result.
 *
 * A thread cancelled in close(2), or a child of a bare vfork(2) killed there, leaves the two apart
 * up to the number's next birth or close. Such a child's closes end lives of the parent's numbers.
 */
#ifndef FDHINTS_H
#define FDHINTS_H

#include "hook/fdkind.h"

typedef struct Hint { /* half a cache line */
    union {
        struct { /* kind and mistakes: for each direction */
            uint8_t none;
            uint8_t flags;          /* FdFlags: of the number, for both */
            uint8_t kind[DIRS];     /* FdKind */
            uint8_t mistakes[DIRS]; /* how often HOT was wrong */
            uint16_t peer;          /* a pipe's other end; 0: none */
        };
        uint64_t what;
    };
    union {
        uint32_t streak[DIRS]; /* tries since the last that would have blocked */
        uint64_t streaks;
    };
    uint32_t life, over; /* the core's: DescNote */
    uint8_t used;        /* likewise: the runtime knows it */
} ALIGNED(32) Hint;
_Static_assert(sizeof(Hint) == sizeof(DescNote) &&
                   offsetof(Hint, used) == offsetof(DescNote, used) &&
                   offsetof(Hint, life) == offsetof(DescNote, life) &&
                   offsetof(Hint, over) == offsetof(DescNote, over),
               "");
#define WHAT(flags, reading, writing) \
    ((uint64_t)(flags) << 8 | (uint64_t)(reading) << 16 | (uint64_t)(writing) << 24)
#define WHAT_PEER(fd) ((uint64_t)(fd) << 48)
#define WHAT_COPIED (((uint64_t)1 << 48) - 1) /* all but peer */

#define FD_HINTS DESC_NOTES
extern Hint fd_hints[FD_HINTS];

INLINE FdKind kind_hint(int fd, int dir) {
    return (unsigned)fd < FD_HINTS ? (FdKind)load_rlx(&fd_hints[fd].kind[dir]) : KIND_UNKNOWN;
}
INLINE void kind_set(int fd, int dir, FdKind kind) {
    if ((unsigned)fd < FD_HINTS && kind_hint(fd, dir) != kind)
        store_rlx(&fd_hints[fd].kind[dir], (uint8_t)kind);
}
INLINE void kind_set_both(int fd, FdKind kind) {
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

/* The life of the number, for a call that begins on a goroutine; 0: the number is being closed, and
 * the call is made without a life. A number beyond the table counts as `used`. */
COLD uint32_t life_waits(int fd); /* until the number is no longer being closed */
INLINE uint32_t life_of(int fd) {
    if (unlikely((unsigned)fd >= FD_HINTS)) return 1;
    uint32_t life = note_life(note_at(fd));
    return likely(life != 0) ? life : life_waits(fd);
}
INLINE bool life_goes_on(int fd, uint32_t life) {
    return (unsigned)fd >= FD_HINTS || load_rlx(&fd_hints[fd].life) == life;
}
/* Around every close of a number of the table. */
INLINE uint32_t life_ends(int fd) {
    uint32_t life = note_ends(note_at(fd));
    fence_full(); /* then `used` is read: see above */
    return life;
}
INLINE void life_over(int fd, uint32_t life) { note_over(note_at(fd), life); }

/* A number of the hook's own for a file, held while a thread sleeps. */
typedef struct Own {
    int fd; /* -errno */
    uint32_t life;
    bool borrowed; /* the caller's number: none is left */
} Own;
INLINE void own_close(const Own *own) {
    bool noted = (unsigned)own->fd < FD_HINTS;
    if (own->borrowed || !life_goes_on(own->fd, own->life)) return; /* the program has closed it */
    uint32_t next = noted ? note_ends(note_at(own->fd)) : 0;
    sys(SYS_close, own->fd, 0, 0, 0, 0, 0);
    if (noted) life_over(own->fd, next);
}
/* For the file of that life; -EBADF: that life is over. Another file's number has another life, so
 * the life is compared after the copy. If no number is left the caller's has to do, as in libc: a
 * close between this look and the call that follows is not seen. */
INLINE Own own_number(int fd, uint32_t life) {
    Own own = {.fd = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0)};
    if (own.fd < 0) own = (Own){.fd = fd, .borrowed = true};
    else if (own.fd < FD_HINTS) own.life = note_own(note_at(own.fd));
    if (life_goes_on(fd, life)) return own;
    own_close(&own);
    return (Own){.fd = -EBADF};
}

COLD bool hint_stale(int fd); /* false: a child's number, of which nothing is noted */
/* The last close has not said that it is over, or the number never had a life. */
COLD void life_begins(int fd);
/* The number is another file from now on. If it is `used`, its last file was closed unseen. */
INLINE void hint_born(int fd, uint64_t what) {
    if (unlikely((unsigned)fd >= FD_HINTS)) return;
    Hint *h = &fd_hints[fd];
    if (unlikely(load_rlx(&h->used)) && !hint_stale(fd)) return;
    if (unlikely(load_rlx(&h->over) + 1 != load_rlx(&h->life))) life_begins(fd);
    store_rlx(&h->what, what | WHAT(HINT_FRESH, 0, 0));
    store_rlx(&h->streaks, 0);
}
/* The result of a bare call that makes a number. */
INLINE int fd_born(long fd, uint64_t what) {
    if (unlikely(fd < 0)) return (int)returned(fd);
    hint_born((int)fd, what);
    return (int)fd;
}
INLINE void hint_forget(Hint *h) {
    store_rlx(&h->what, 0);
    store_rlx(&h->streaks, 0);
}
/* Before a call parks: the runtime may know an earlier file, closed behind its back. */
COLD void hint_settle_fresh(int fd);
INLINE void hint_settle(int fd) {
    if (flags_hint(fd) & HINT_FRESH) hint_settle_fresh(fd);
}

/* ---- what is called as it is (optimistic.c) -------------------------------------------------- */

/* hot_count: a try has found something. hot_off: it has found nothing. */
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
/* May a call that is not expected to wait be made as it is? Not while another such call sleeps. */
INLINE bool hot_allowed(M *m) { return load_rlx(known.taken) == 0 && load_rlx(&m->attn) == 0; }
INLINE bool hot_now(M *m, int fd, int dir) {
    uint32_t n = load_rlx(&fd_hints[fd].streak[dir]) + 1;
    store_rlx(&fd_hints[fd].streak[dir], n);
    return n % HOT_CHECK != 0 && hot_allowed(m);
}
/* After a call made as it is; looks: the monitor's count before it. Three more, and it slept. */
COLD void hot_slept(M *m, int fd, int dir);
INLINE bool was_taken(M *m) { return unlikely(load_rlx(&m->attn) & ATTN_TAKEN); }
INLINE bool slept(M *m, uint32_t looks) {
    return was_taken(m) || unlikely(load_rlx(known.looks) - looks >= 3);
}

/* ---- pipes and eventfds --------------------------------------------------------------------- */

#define PIPE_PART (4 * PIECE)
#define PIPE_ALL (16 * PIECE)

/* The other end; NULL: it is gone. */
INLINE Hint *pipe_peer(int fd) {
    uint32_t peer = load_rlx(&fd_hints[fd].peer);
    return peer != 0 && load_rlx(&fd_hints[peer].peer) == (uint32_t)fd ? &fd_hints[peer] : NULL;
}
/* Each end counts in the word that its own tries do not use. */
INLINE uint32_t *pipe_read(Hint *reader) { return &reader->streak[DIR_WRITE]; }
INLINE uint32_t *pipe_written(Hint *writer) { return &writer->streak[DIR_READ]; }
INLINE void add_plain(uint32_t *n, uint32_t more) { store_rlx(n, load_rlx(n) + more); }

/* A PIPE. True: there are bytes, and n count as taken until pipe_took() says how many were. */
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
/* Room for n bytes. A pipe has 16 pages. A write begins a new page unless its odd bytes fit into
 * the last, so two neighbours hold more than one page together, but for the first, which may be
 * half read. PIPE_PART bytes stand in 10 pages at most, and as many more need 5. A user with very
 * many pipes gets smaller ones: the first write that waits shows it. */
INLINE bool pipe_room(int fd, size_t n) {
    Hint *reader = pipe_peer(fd);
    if (reader == NULL || n > PIPE_ALL) return false;
    uint32_t in = load_rlx(pipe_written(&fd_hints[fd])) - load_rlx(pipe_read(reader));
    return in == 0 || (in <= PIPE_PART && n <= PIPE_PART);
}
INLINE void pipe_put(int fd, long r) {
    add_plain(pipe_written(&fd_hints[fd]), (uint32_t)(r > 0 ? r : 0));
}
/* r bytes were moved (or -errno), whatever the kind. */
INLINE void pipe_moved(int fd, int dir, long r) {
    if (r <= 0 || (unsigned)fd >= FD_HINTS || load_rlx(&fd_hints[fd].kind[dir]) != KIND_PIPE)
        return;
    add_plain(dir == DIR_READ ? pipe_read(&fd_hints[fd]) : pipe_written(&fd_hints[fd]),
              (uint32_t)r);
}
/* An EVENT. True: it was written, and not read since. */
INLINE bool event_take(int fd) {
    bool there = load_rlx(&fd_hints[fd].peer) != 0;
    if (there) store_rlx(&fd_hints[fd].peer, 0);
    return there;
}
INLINE void event_put(int fd) { store_rlx(&fd_hints[fd].peer, 1); }

#endif
