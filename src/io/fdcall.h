/* A call on a descriptor, shared by attempt.c (one attempt that cannot block), wait.c (the wait and
 * the next attempt), posix.c (the POSIX mirrors) and file.c (files that cannot be polled). A Call
 * lives on the caller's stack; a parked reader's stack holds little more. */
#ifndef FDCALL_H
#define FDCALL_H

#include "sched/netpoll.h"
#include "base/san.h"
#include "sched/sched.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

typedef struct Call Call;

/* One attempt: a count, or -errno; -EAGAIN: it would block. In a section, counted in the entry; an
 * attempt may end both and begin them again, which changes c->m. */
typedef long attempt_fn(Call *c);

struct Call {
    attempt_fn *attempt;
    int fd;
    uint8_t dir;
    bool plain;   /* a drained socket may skip its first attempt (attempt.c) */
    bool pace;    /* no edge will come: try again by the clock */
    bool looks;   /* an edge may not come: try again by the clock as well */
    bool retried; /* it has waited: it goes to the front of the queue */
    uint8_t vain; /* attempts that had to wait, up to 255 */
    bool begun;   /* seq is set; later runs of the call keep it */
    bool adrift;  /* no life: the number was being closed for too long (call_note) */
    bool passed;  /* a descriptor came with the bytes (posix.c) */
    bool goes_on; /* with the rest of MSG_WAITALL: an error is left to the next call (wait.c) */
    bool opens;   /* MSG_FASTOPEN began to connect, and took nothing: now a plain send */
    /* The attempt's arguments: */
    int flags;
    socklen_t alen;
    void *buf;
    size_t n;
    struct sockaddr *sa;
    socklen_t *salen;
    int64_t offset; /* with FILE_AT */
    /* wait.c's: */
    M *m;
    Desc *d;
    uint32_t seq;   /* the entry's, when the call began */
    uint32_t life;  /* under the hook: the number's, when the call began; 0: to be noted */
    uint32_t edges; /* of the call's direction, before the attempt */
    int64_t pause;  /* paced: the last pause; 0: none yet */
};

INLINE Call call_of(attempt_fn *attempt, int fd, int dir, const void *buf, size_t n) {
    return (Call){.attempt = attempt, .fd = fd, .dir = (uint8_t)dir, .buf = (void *)buf, .n = n};
}

/* No bytes, or more than SSIZE_MAX: the kernel answers such a call without a wait. */
INLINE bool odd_length(size_t n) { return n - 1 >= SSIZE_MAX; }

/* Tries and waits until a result other than -EAGAIN. Begins and ends the section. */
long call_run(Call *c, int64_t deadline);
long call_nowait(Call *c); /* one attempt */
/* Until c->n bytes are moved (posix.c): c->n, or -errno; -ENODATA: the input ended before. */
ssize_t move_all(Call *c, int64_t deadline);

/* ---- the descriptor of a call ---------------------------------------------------------------- */

/* The entry counts the calls inside the kernel, for gort_close. In a section. desc_ref: false where
 * the descriptor was closed since its sequence was seq; desc_ref_late: where it may have been. */
NOINLINE void desc_wake_closer(M *m, Desc *d);
INLINE void desc_unref(M *m, Desc *d) {
    uint64_t now = sub_seq(&d->state, 1);
    if (unlikely((now & DESC_CLOSING) && !(now & DESC_REFS))) desc_wake_closer(m, d);
}
NOINLINE bool desc_ref_late(M *m, Desc *d, uint32_t seq);
INLINE bool desc_ref(M *m, Desc *d, uint32_t seq) {
    uint64_t was = __atomic_fetch_add(&d->state, 1, __ATOMIC_SEQ_CST);
    if (likely(!(was & (DESC_CLOSING | DESC_GIVING)) && (uint32_t)(was >> 32) == seq)) return true;
    return desc_ref_late(m, d, seq);
}
/* The same without a count. Under a count, or in the entry's lock, true stays true. */
INLINE bool desc_lives(Desc *d, uint32_t seq) {
    uint64_t state = load_acq(&d->state);
    return !(state & DESC_CLOSING) && (uint32_t)(state >> 32) == seq;
}

/* For the descriptor that a call began with. */
void call_unref(Call *c);
void call_reref(Call *c); /* even if it was closed meanwhile: call_end gives the count back */
bool call_closed(Call *c);
/* Around a system call that may sleep: the call counts as asleep instead (close.c). */
void call_doze(Call *c);
void call_rouse(Call *c);

/* After a result other than -EAGAIN there may be more: wakes the next waiter. */
NOINLINE void desc_pass_on_slow(M *m, Desc *d, int dir);
INLINE void desc_pass_on(M *m, Desc *d, int dir) {
    if (unlikely(load_rlx(&d->q[dir].head) != NULL)) desc_pass_on_slow(m, d, dir);
}

/* After -EAGAIN, d->lock held: step 3 of netpoll.c. `edges` was sampled before the attempt. */
enum { LOOK_RETRY, LOOK_CLOSED, LOOK_UNREPORTED /* no edge would be reported */, LOOK_PARK };
INLINE int desc_look_locked(Desc *d, int dir, uint32_t seq, uint32_t edges) {
    if (unlikely(!desc_lives(d, seq))) return LOOK_CLOSED;
    if (unlikely(load_rlx(&d->edges[dir]) != edges)) return LOOK_RETRY;
    return likely(d->registered && !d->hung) ? LOOK_PARK : LOOK_UNREPORTED;
}

/* Links w for the current goroutine, which then parks with d->lock. */
INLINE void desc_wait(M *m, Desc *d, int dir, Waiter *w, bool front) {
    G *gp = self(m);
    w->gp = gp;
    w->ticket = wait_begin(gp);
    w->group = NULL;
    w->wake_fd = -1;
    w->result = 0;
    waiter_link(&d->q[dir], w, front);
    if (dir == DIR_READ) store_rlx(&d->reader, gp);
    add_seq(&sched.poll_waiters, 1);
}

/* Drained sockets (attempt.c). A read of n bytes gave r. */
INLINE uint32_t drained_word(uint32_t edges) { return edges << 1 | 1; }
INLINE void desc_note_drained(Desc *d, uint32_t edges, long r, size_t n) {
    if (r > 0 && (size_t)r < n && load_rlx(&d->tcp)) store_rlx(&d->drained_at, drained_word(edges));
}
INLINE bool desc_drained(Desc *d, uint32_t *edges) {
    uint32_t word = load_rlx(&d->drained_at);
    *edges = load_acq(&d->edges[DIR_READ]); /* pairs with netpoll_event: hung, then edges */
    return word == drained_word(*edges) && !load_rlx(&d->hung) && load_rlx(&d->tcp);
}

/* For TSan: a read comes after the writes that it saw. Only the kernel knows which ends belong
 * together, so all descriptors share one word. */
extern char io_order;

/* Readies the goroutines that the poller or a close has claimed. In a section. */
void wake_list(M *m, GList *list);

/* ---- poll(2) --------------------------------------------------------------------------------- */

INLINE short poll_events(int dir) { return dir == DIR_READ ? POLLIN : POLLOUT; }

/* poll(2) without waiting. */
INLINE long poll_now(struct pollfd *set, unsigned long n) {
    struct timespec none = {0, 0};
    return sys6(SYS_ppoll, set, n, &none, NULL, 0, 0);
}
/* One descriptor: 0, events, or -errno. */
INLINE long fd_poll_now(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    long r = poll_now(&p, 1);
    return r <= 0 ? r : p.revents;
}

/* The eventfd by which gort_close wakes a plain thread; -errno: no number is free. */
INLINE int wake_fd_new(void) {
    return (int)sys6(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0);
}

#define PACE (10 * GORT_MS) /* the longest pause of a paced wait */
#define CREDIT 8            /* vain wake-ups that a call believes */

/* m's plain thread sleeps in the kernel, until the deadline at most; looks: for PACE at most. */
INLINE void thread_ppoll(M *m, struct pollfd *set, unsigned long n, int64_t deadline, bool looks) {
    int64_t now = os_now(), left = time_left(deadline, now);
    if (looks && left > PACE) left = PACE;
    struct timespec ts = {left / GORT_SEC, left % GORT_SEC};
    bool forever = deadline == GORT_FOREVER && !looks;
    store_rlx(&m->rest, m->locks);
    sys6(SYS_ppoll, set, n, forever ? NULL : &ts, NULL, 0, 0);
    section_resumes(m);
}

/* A number of the library's that is kept over a sleep (note_own), and its close. */
INLINE uint32_t kept_life(int fd) {
    DescNote *note = desc_note_of(fd);
    return note ? note_own(note) : 0;
}
INLINE void kept_close(int fd, uint32_t life) {
    DescNote *note = desc_note_of(fd);
    if (note && load_rlx(&note->life) != life) return; /* the number may have another owner */
    uint32_t next = note ? note_ends(note) : 0;
    sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    if (note) note_over(note, next);
}

INLINE int socket_option(int fd, int option) { /* -1: it has none */
    int value = -1;
    socklen_t len = sizeof value;
    sys6(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &len, 0);
    return value;
}

#define PIECES 8 /* of a vector, in one attempt at the rest of it */

/* The next pieces behind the first `done` bytes: how many. */
INLINE size_t pieces_after(const struct iovec *iov, size_t n, size_t done, struct iovec *out,
                           size_t most) {
    size_t k = 0;
    for (size_t i = 0; i < n && k < most; i++) {
        size_t skip = done < iov[i].iov_len ? done : iov[i].iov_len;
        done -= skip;
        if (skip < iov[i].iov_len)
            out[k++] = (struct iovec){(char *)iov[i].iov_base + skip, iov[i].iov_len - skip};
    }
    return k;
}

/* poll.c: gort_poll with a deadline. Outside of sections. */
int poll_until(struct pollfd *fds, unsigned long n, int64_t deadline);

/* attempt.c: */
attempt_fn try_rw, try_recv, try_send, try_recvmsg, try_sendmsg, try_peek_all, try_peekmsg_all,
    try_accept, try_connect;

/* file.c. Without FILE_AT: at the file's own position. With FILE_VECTOR: c->buf is an iovec. */
enum { FILE_READ = DIR_READ, FILE_WRITE = DIR_WRITE, FILE_FSYNC };
enum { FILE_VECTOR = 1, FILE_AT = 2 }; /* in c->flags */
INLINE bool is_vector(const Call *c) { return c->flags & FILE_VECTOR; }
long file_run(Call *c, int op);         /* never -EAGAIN */
long file_sleep(Call *c, int op);       /* the plain call, with the P handed off */
long file_call(Call *c, int op);        /* the plain call: it may sleep */
long file_call_nowait(Call *c, int op); /* RWF_NOWAIT: -EAGAIN instead of a sleep */
/* Not every file knows RWF_NOWAIT, and a seccomp filter may refuse the call. */
INLINE bool nowait_refused(long r) { return r == -EOPNOTSUPP || r == -ENOSYS || r == -EPERM; }

#endif
