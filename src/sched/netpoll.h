/* The poller: what the scheduler calls, and what the calls on descriptors (wait.c, close.c, poll.c)
 * know of one. Protocol: netpoll.c. Returns lists of Gs, never readies. */
#ifndef NETPOLL_H
#define NETPOLL_H

#include "base/base.h" /* first: it asks libc for everything */
#include "os/poller.h"
#include "runtime.h"

/* ---- for the scheduler ---------------------------------------------------------------------- */

int netpoll_start(void); /* at every start of a runtime: 0 or -errno */
void netpoll_stop(void);
/* Collects Gs whose descriptors are ready. deadline 0: does not block; GORT_FOREVER: until an event
 * or netpoll_break(). May return early with nothing. Each G in the list is claimed and still counts
 * in sched.poll_waiters: the scheduler subtracts list->count once they are ready. */
void netpoll(int64_t deadline, GList *list);
void netpoll_break(void); /* wakes the thread that blocks in netpoll; any thread, any time */

/* ---- a descriptor --------------------------------------------------------------------------- */

enum { DIR_READ = 0, DIR_WRITE = 1, DIRS = 2 };

/* How to make an attempt that cannot block (attempt.c); a hint, checked where it is used. */
enum { MODE_UNKNOWN, MODE_SOCKET, MODE_NOWAIT, MODE_OTHER };

typedef struct Waiter Waiter;
typedef struct PollGroup PollGroup;

/* On the waiter's stack. The entry's lock guards all fields while it is linked. */
struct Waiter {
    Waiter *next, *prev;
    G *gp;
    PollGroup *group; /* a gort_poll's; else NULL */
    uint32_t ticket;
    int result;  /* 0: try again; -EBADF: closed by gort_close */
    int wake_fd; /* a plain thread's eventfd; -1: a goroutine */
    bool linked;
};

/* A gort_poll that waits. An event may hit it before it has parked: see poll.c. */
enum { GROUP_ARMING, GROUP_PARKED, GROUP_HIT };
struct PollGroup {
    G *gp;
    uint32_t ticket;
    uint32_t state; /* atomic: GROUP_... */
    Lock lock;      /* held while its goroutine parks */
};

/* A ring: the head's prev is the tail. */
typedef struct WaitQueue {
    Waiter *head;
} WaitQueue;

/* An event, an attempt and a park touch one cache line: each further one may be a miss. */
typedef struct Desc {
    uint64_t state; /* atomic: sequence << 32 | DESC_... | calls inside the kernel */
    Lock lock;
    uint32_t edges[DIRS]; /* lock to write, atomic: edges the kernel has reported */
    uint32_t drained_at; /* atomic, attempt.c: edges[DIR_READ] when a read found the end; low bit */
    uint8_t mode[DIRS];  /* atomic hints: MODE_... */
    uint8_t tcp;         /* atomic hint: a TCP socket */
    uint8_t hung;        /* lock to write, atomic: an end, error or urgent byte was reported */
    /* lock: */
    bool registered;   /* with the kernel, unless the program has closed the number since */
    bool polled[DIRS]; /* there may be a gort_poll in the queue */
    WaitQueue q[DIRS]; /* goroutines, first come first served */
    G *reader;         /* atomic hint, for prefetching: the last waiter in q[DIR_READ] */
    /* The second line. */
    WaitQueue threads; /* plain threads: they poll for themselves, and are here for gort_close */
    G *closer;         /* waits until no call is inside the kernel */
    /* calls that sleep in the kernel, not counted in state: goroutines', threads' (close.c) */
    uint32_t asleep[2];
    bool held; /* closed, and a placeholder keeps the number while such calls sleep */
} ALIGNED(CACHE_LINE) Desc;
_Static_assert(offsetof(Desc, reader) + sizeof(G *) <= CACHE_LINE, "the first line");

#define DESC_CLOSING ((uint64_t)1 << 31)
/* set and cleared under the lock, around close(2): the sequence is the next owner's (close.c) */
#define DESC_GIVING ((uint64_t)1 << 30)
#define DESC_REFS (DESC_GIVING - 1)
#define DESC_SEQ ((uint64_t)1 << 32)

/* The table of all descriptors. */
#define CHUNK 1024
#define CHUNKS 65536 /* 64 million numbers: 512 KB of untouched zeroes */
typedef struct Chunk {
    Desc desc[CHUNK];
    uint8_t mark[CHUNK] ALIGNED(CACHE_LINE); /* atomic: 0; 1 marked; 2 seen once by the pass */
} Chunk;
extern Chunk *desc_table[CHUNKS]; /* atomic, written once each */

Desc *desc_of(int fd); /* made on first use; NULL: no such number, or no memory */
/* Why desc_of() gave NULL. Closes and calls that need not wait go on without an entry. */
INLINE int desc_refusal(int fd) { return (uint32_t)fd / CHUNK < CHUNKS ? -ENOMEM : -EBADF; }
INLINE Desc *desc_at(int fd) { /* NULL: nothing is known about it */
    uint32_t i = (uint32_t)fd / CHUNK;
    if (unlikely(i >= CHUNKS)) return NULL; /* fd < 0, too */
    Chunk *c = load_acq(&desc_table[i]);    /* pairs with the CAS in chunk_make */
    if (unlikely(c == NULL)) return NULL;
    Desc *d = &c->desc[(uint32_t)fd % CHUNK];
    /* keeps d as one address: compilers like to keep chunk and index, and several sums of them */
    __asm__("" : "+r"(d));
    return d;
}
INLINE uint32_t desc_seq(Desc *d) { return (uint32_t)(load_acq(&d->state) >> 32); }

/* All with d->lock held. */
NOINLINE void waiter_link_behind(WaitQueue *q, Waiter *w, bool front); /* there are others */
INLINE void waiter_link(WaitQueue *q, Waiter *w, bool front) {
    w->linked = true;
    if (likely(q->head == NULL)) q->head = w->next = w->prev = w;
    else waiter_link_behind(q, w, front);
}
void waiter_unlink(WaitQueue *q, Waiter *w);
int desc_register(Desc *d, int fd); /* with the kernel: 0, -errno */
void desc_reset(Desc *d);           /* nothing is known of the file any more */
/* Notes for libgort-hook.so, which sees closes. `used`: the core knows something of the number in
 * this life, so closing it needs gort_close. Every close, by whomever, adds one to `life` before
 * the kernel closes; `over` follows once the kernel has. In between the number is being closed, and
 * no call begins on it (src/hook/fdhints.h). */
typedef struct DescNote {
    uint8_t of_the_hook[16];
    uint32_t life; /* atomic; 0: no call has begun on the number, and nobody has closed it */
    uint32_t over; /* atomic: life - 1; otherwise the number is being closed, or its life is 0 */
    uint8_t used;  /* atomic; only the core clears it, with what it knows */
    uint8_t owed;  /* atomic: closed in a handler; the monitor is to wake the waiters */
} ALIGNED(32) DescNote;
extern DescNote *desc_notes; /* a table of the hook's; NULL: there is no hook */
#define DESC_NOTES 65536
INLINE DescNote *desc_note_of(int fd) { /* NULL: there is none */
    DescNote *first = load_rlx(&desc_notes);
    return unlikely(first != NULL) && (unsigned)fd < DESC_NOTES ? &first[fd] : NULL;
}
INLINE void desc_note(int fd) {
    DescNote *note = desc_note_of(fd);
    if (note) store_rlx(&note->used, 1);
}
/* The life of a number, for a call that begins; 0: none yet, or being closed (life_awaited). */
INLINE uint32_t note_life(const DescNote *note) {
    uint32_t life = load_rlx(&note->life);
    return likely(load_acq(&note->over) + 1 == life) ? life : 0; /* pairs with note_over */
}
/* A close begins: the next life. Never 1, which life_awaited may set meanwhile. */
INLINE uint32_t note_ends(DescNote *note) {
    uint32_t next = load_rlx(&note->life) + 1;
    if (unlikely(next < 2)) next = 2;
    store_rlx(&note->life, next);
    return next;
}
/* The kernel has closed the number, or given it anew. Does nothing if the next owner has closed it
 * too meanwhile. Release: a call that begins sees what the close had to forget as forgotten. */
INLINE void note_over(DescNote *note, uint32_t life) {
    if (likely(load_rlx(&note->life) == life)) store_rel(&note->over, life - 1);
}
/* For a call that is going to rely on this life. A Dekker pair with life_ends (hook/fdhints.h): a
 * closer sees `used`, or the call sees the next life. False: it has been closed. Acquire: where
 * another call has set `used`, a closer that missed that has stored its new life before. */
INLINE bool note_known(DescNote *note, uint32_t life) {
    if (unlikely(!load_acq(&note->used))) {
        store_rlx(&note->used, 1);
        fence_full();
    }
    return load_rlx(&note->life) == life;
}
/* The life of a number that the kernel has just given to the library, to compare after a sleep: the
 * program may close it meanwhile, and then the library must not. 0: it is being closed already. */
INLINE uint32_t note_own(DescNote *note) {
    uint32_t life = load_rlx(&note->life), none = 0;
    if (unlikely(life == 0)) return cas_seq(&note->life, &none, 1) ? 1 : 0;
    note_over(note, life); /* the close before is over: the kernel gave the number anew */
    return life;
}
/* Waits until the number is not being closed any more, and gives its life; 0: that takes too long.
 * Parks, or the thread sleeps. Outside of any section. */
NOINLINE uint32_t life_awaited(int fd);

INLINE void desc_note_unused(int fd) {
    DescNote *note = desc_note_of(fd);
    if (note) store_rlx(&note->used, 0);
}
/* The library gives a number back: before the close, and after it (desc_note_over). */
INLINE uint32_t desc_note_end(int fd) {
    DescNote *note = desc_note_of(fd);
    if (note == NULL) return 0;
    uint32_t life = note_ends(note);
    store_rlx(&note->used, 0);
    return life;
}
INLINE void desc_note_over(int fd, uint32_t life) {
    DescNote *note = desc_note_of(fd);
    if (note) note_over(note, life);
}

/* The caller parks on an old registration: marks the number, so that a pass looks again. Under the
 * lock. A mark that is set stays good: the pass that clears it locks the entry afterwards. */
NOINLINE void desc_trust_slow(uint8_t *mark);
INLINE void desc_trust(Desc *d, int fd) {
    uint8_t *mark =
        &container_of(d - (uint32_t)fd % CHUNK, Chunk, desc)->mark[(uint32_t)fd % CHUNK];
    desc_note(fd);
    if (unlikely(load_rlx(mark) != 1)) desc_trust_slow(mark);
}
void desc_wake_next(Desc *d, int dir, GList *list); /* one waiter, and every gort_poll */
void desc_wake_all(Desc *d, int result, GList *list);
/* An edge that wakes all waiters of this side, and the plain threads of both: try again. */
void desc_wake_side(Desc *d, int dir, GList *list);
int close_number(int fd); /* close(2): 0 or -errno */
/* Closes the placeholder of d, if it has one and no call sleeps any more. */
void desc_let_go(Desc *d, int fd);

/* The program closes numbers by plain close(2): look at marks more often. */
void netpoll_distrust(void);

/* The kernel has just given this number to the library: forgets what was known about it. */
void desc_born(int fd);

/* A file operation on the ring, by a goroutine in a section of depth 1; parks. True: op->result is
 * the outcome (-EAGAIN: the kernel refused it), and *m the M to go on with. False: no ring now. */
struct UringOp;
bool netpoll_file(M **m, struct UringOp *op);

/* A call for a new descriptor gave this error. True: the limit was raised, make the call again. */
bool netpoll_more_numbers(long error);

#endif
