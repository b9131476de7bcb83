/*
 * The table of descriptors and of their waiters.
 *
 * There is an entry per number, found by two array steps, never moved and never freed. The kernel
 * reports edges: "something has changed since you last looked".
 *
 * Waiting without losing a wake-up. A waiter:
 *   1. samples edges[dir]
 *   2. makes the call; if it does not say EAGAIN, done
 *   3. locks the entry; if edges[dir] is not the sample, goes to 1
 *   4. makes sure that the kernel reports (desc_register), links a Waiter, parks; the lock is
 *      released once the stack is left
 * An event locks the entry, adds one to edges[dir], takes the first waiter off, claims it, unlocks.
 * The state changes after the kernel answered EAGAIN in 2, so the edge is reported after 1: either
 * before 3, which sees another count, or after 4, which has linked a waiter. A count and not Go's
 * one bit "ready": with several readers one would clear the bit before another has seen it.
 *
 * One edge, several waiters. The first is woken. It makes its call, and unless that gives EAGAIN it
 * wakes the next (wait.c): there may be more to take. After EAGAIN it goes to the front of the
 * queue again. A gort_poll takes nothing away, so each edge wakes every gort_poll. Plain threads
 * poll for themselves (level-triggered), and are linked only so that gort_close finds them.
 *
 * Sequence. gort_close adds to the sequence in `state`. A call keeps the one it began with, so
 * after a close it gives -EBADF and never touches the next owner of the number. Events carry the
 * sequence of their registration, so an event of a former life is dropped.
 *
 * Calls inside the kernel are counted in the same word, and close(2) waits for them: otherwise a
 * call that was woken would read from the next owner of the number. The count is held for
 * non-blocking system calls only, never over a park (close.c).
 *
 * Relooking. If the program closes a number by plain close(2) and it comes back as another file,
 * the kernel drops the registration without a word, and a waiter that trusts it waits for ever. To
 * register again at every park would cost 5 % of an echo. Instead a park on an old registration
 * marks the number, and netpoll() passes over the marks now and then: a number that is found marked
 * twice and still has waiters is registered again, which makes the kernel report anew what is
 * ready. This mends any other loss of an edge too, so tests also run with GORT_DEBUG=relook=0.
 * Passes come every 250 ms, and every millisecond once a registration has turned out to be gone
 * (`distrust`). There are two Dekker pairs: the waiter marks, fence, reads `suspects`, and the pass
 * clears suspects, fence, reads the marks; the waiter sets suspects, fence, reads `blocking`, and a
 * poller that is to sleep without a limit sets blocking, fence, reads suspects.
 *
 * poll_waiters counts goroutines in queues. The waiter adds itself before it parks. Its waker
 * subtracts it after making it ready; a waiter whose deadline fired subtracts itself. So the count
 * is never too low while a wake-up is on its way, which the deadlock detector relies on.
 */
#include "sched/netpoll.h"
#include "base/san.h"
#include "sched/sched.h"
#include "os/linux/uring.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_RARELY (250 * GORT_MS)
#define LOOK_OFTEN GORT_MS

Chunk *desc_table[CHUNKS];
DescNote *desc_notes;
static uint32_t chunks_end; /* atomic: one past the highest in use */

static Lock pass_lock;
static int64_t passed_at; /* pass_lock */
static uint32_t suspects; /* atomic: there may be marks */
static uint32_t blocking; /* atomic: a thread sleeps in the kernel */
static uint32_t distrust; /* atomic: the program closes numbers by plain close(2) */
static uint32_t anew;     /* atomic: the kernel side has begun again (netpoll_epoll.c) */

static int64_t period(void) { return load_rlx(&distrust) ? LOOK_OFTEN : LOOK_RARELY; }
void netpoll_distrust(void) { store_rlx(&distrust, 1); }

static Chunk *chunk_make(uint32_t i) {
    Chunk *fresh = os_map(sizeof(Chunk), false), *none = NULL;
    if (fresh == NULL) return NULL;
    if (!cas_acq_rel(&desc_table[i], &none, fresh)) {
        os_unmap(fresh, sizeof(Chunk));
        return none;
    }
    uint32_t end = load_rlx(&chunks_end);
    while (end <= i && !cas_seq(&chunks_end, &end, i + 1)) {}
    return fresh;
}

/* Any thread; takes no lock. */
Desc *desc_of(int fd) {
    Desc *d = desc_at(fd);
    uint32_t i = (uint32_t)fd / CHUNK;
    if (likely(d != NULL) || i >= CHUNKS) return d;
    Chunk *c = chunk_make(i);
    return c ? &c->desc[(uint32_t)fd % CHUNK] : NULL;
}

void waiter_link_behind(WaitQueue *q, Waiter *w, bool front) {
    Waiter *head = q->head;
    w->next = head;
    w->prev = head->prev;
    w->prev->next = head->prev = w;
    if (front) q->head = w;
}

void waiter_unlink(WaitQueue *q, Waiter *w) {
    w->linked = false;
    w->prev->next = w->next;
    w->next->prev = w->prev;
    if (q->head == w) q->head = w->next == w ? NULL : w->next;
}

/* Ends the wait of w, which is unlinked, unless another waker has. */
static bool waiter_claim(Waiter *w, int result, GList *list) {
    G *gp = w->gp;
    w->result = result;
    if (w->group && xchg_seq(&w->group->state, GROUP_HIT) != GROUP_PARKED) return false;
    if (!wait_claim(gp, w->ticket)) return false;
    glist_push(list, gp);
    return true;
}

void desc_wake_next(Desc *d, int dir, GList *list) {
    WaitQueue *q = &d->q[dir];
    bool one = false, polled = d->polled[dir];
    Waiter *w = q->head, *last = w ? w->prev : NULL;
    if (likely(w && w == last && !polled)) { /* nearly always */
        q->head = NULL;
        w->linked = false;
        waiter_claim(w, 0, list);
        return;
    }
    while (w && (!one || polled)) {
        Waiter *next = w == last ? NULL : w->next;
        bool single = w->group == NULL;
        if (!(one && single)) {
            waiter_unlink(q, w);
            if (waiter_claim(w, 0, list) && single) one = true;
        }
        w = next;
    }
    if (polled) d->polled[dir] = false; /* every one of them was found */
}

static void wake_side(Desc *d, int dir, int result, GList *list) {
    for (Waiter *w; (w = d->q[dir].head) != NULL;) {
        waiter_unlink(&d->q[dir], w);
        waiter_claim(w, result, list);
    }
}

static void wake_threads(Desc *d, int result) {
    for (Waiter *w; (w = d->threads.head) != NULL;) {
        static const uint64_t one = 1;
        waiter_unlink(&d->threads, w);
        w->result = result;
        if (w->wake_fd >= 0) os_write(w->wake_fd, &one, sizeof one);
    }
}

void desc_wake_all(Desc *d, int result, GList *list) {
    for (int dir = 0; dir < DIRS; dir++) wake_side(d, dir, result, list);
    wake_threads(d, result);
}

void desc_wake_side(Desc *d, int dir, GList *list) {
    store_rel(&d->edges[dir], d->edges[dir] + 1); /* as netpoll_event */
    wake_side(d, dir, 0, list);
    wake_threads(d, 0);
}

int desc_register(Desc *d, int fd) {
    desc_note(fd);
    int r = kpoll_add(fd, desc_seq(d), d->registered);
    if (r == KPOLL_GONE) netpoll_distrust();
    d->registered = r >= 0;
    return r < 0 ? r : 0;
}

NOINLINE void desc_trust_slow(uint8_t *mark) {
    if (unlikely(!settings.relook)) return;
    xchg_seq(mark, 1);
    if (likely(load_seq(&suspects) != 0)) return;
    store_rlx(&suspects, 1);
    fence_full(); /* pairs with netpoll's */
    if (load_rlx(&blocking)) kpoll_break();
}

void desc_reset(Desc *d) {
    d->registered = false;
    store_rlx(&d->hung, 0);
    store_rlx(&d->tcp, 0);
    store_rlx(&d->drained_at, 0);
    store_rlx(&d->mode[DIR_READ], MODE_UNKNOWN);
    store_rlx(&d->mode[DIR_WRITE], MODE_UNKNOWN);
}

void desc_born(int fd) {
    Desc *d = desc_of(fd);
    if (d == NULL) return;
    /* nothing is known of most numbers: they were closed by gort_close, or are new */
    if (load_rlx(&d->mode[DIR_READ]) == MODE_UNKNOWN &&
        load_rlx(&d->mode[DIR_WRITE]) == MODE_UNKNOWN && load_rlx(&d->lock.word) == 0 &&
        !load_rlx(&d->registered) && !load_rlx(&d->held))
        return;
    lock(&d->lock, RANK_POLL);
    desc_reset(d);
    if (d->held) sub_seq(&d->state, DESC_CLOSING); /* plain close(2) closed its placeholder */
    store_rlx(&d->held, false);
    add_seq(&d->state, DESC_SEQ);
    unlock(&d->lock);
}

/* TSan watches descriptors as if they were memory, and learns from libc's close that a number is
 * free: after a bare system call it would report a race of the next owner with the last one. */
int close_number(int fd) {
    if (!tsan_on()) return (int)os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    int *err = __errno_location(), before = *err, r = close(fd) < 0 ? -*err : 0;
    *err = before;
    return r;
}

/* Under the lock: gives a closed number back, once no call sleeps with it (close.c). */
void desc_let_go(Desc *d, int fd) {
    if (!d->held || d->asleep[0] + d->asleep[1] > 0) return;
    store_rlx(&d->held, false);
    add_seq(&d->state, DESC_SEQ - DESC_CLOSING);
    long flags = os_sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    /* else the program has closed the placeholder, and the number is another file's */
    if (flags < 0 || (flags & O_PATH)) close_number(fd);
}

/* An event of the kernel; any M in netpoll(). False: no registration of ours, or not any more. */
static bool netpoll_event(Desc *d, uint32_t seq, uint32_t what, GList *list) {
    lock(&d->lock, RANK_POLL);
    bool known = desc_seq(d) == seq;
    if (known) {
        if (what & EVENT_HUNG) store_rlx(&d->hung, 1);
        for (int dir = 0; dir < DIRS; dir++) {
            if (!(what & (EVENT_READ << dir))) continue;
            /* release: hung before the count, for attempt.c, which reads both */
            store_rel(&d->edges[dir], d->edges[dir] + 1);
            if (d->q[dir].head) desc_wake_next(d, dir, list);
        }
    }
    unlock(&d->lock);
    return known;
}

/* Registers a marked number again if it still has waiters. The kernel may answer by an event at
 * once, or refuse the number (a regular file by now): then the waiters make their calls. */
static void desc_look_again(int fd, GList *list) {
    Desc *d = desc_of(fd);
    lock(&d->lock, RANK_POLL);
    if ((d->q[DIR_READ].head || d->q[DIR_WRITE].head) && desc_register(d, fd) < 0) {
        for (int dir = 0; dir < DIRS; dir++) {
            store_rel(&d->edges[dir], d->edges[dir] + 1);
            desc_wake_next(d, dir, list);
        }
    }
    unlock(&d->lock);
}

/* Moves the marks of one chunk on; true: some are left. */
static bool pass_chunk(Chunk *c, int first, GList *list) {
    bool left = false;
    for (int w = 0; w < CHUNK; w += 8) {
        if (load_rlx((uint64_t *)(void *)&c->mark[w]) == 0) continue;
        for (int i = w; i < w + 8; i++) {
            uint8_t seen = load_rlx(&c->mark[i]), to = seen == 1 ? 2 : 0;
            if (seen == 0) continue;
            if (!cas_seq(&c->mark[i], &seen, to) || to == 2) left = true;
            else desc_look_again(first + i, list);
        }
    }
    return left;
}

static void pass(int64_t now, GList *list) {
    if (!try_lock(&pass_lock, RANK_PRIM)) return;
    if (now - passed_at >= period()) {
        bool left = false;
        passed_at = now;
        store_rlx(&suspects, 0);
        fence_full(); /* pairs with xchg_seq in desc_trust_slow */
        uint32_t end = load_acq(&chunks_end);
        for (uint32_t i = 0; i < end; i++) {
            Chunk *c = load_acq(&desc_table[i]);
            if (c && pass_chunk(c, (int)i * CHUNK, list)) left = true;
        }
        if (left) {
            store_rlx(&suspects, 1);
            fence_full(); /* a poller may have gone to sleep while it was 0 */
            if (load_rlx(&blocking)) kpoll_break();
        }
    }
    unlock(&pass_lock);
}

/* The kernel side has begun again: registers all numbers with waiters there. Twice does no harm. */
static NOINLINE void desc_sweep(GList *list) {
    store_seq(&anew, 0);
    for (uint32_t i = 0; i < load_acq(&chunks_end); i++) {
        Chunk *c = load_acq(&desc_table[i]);
        for (int k = 0; c && k < CHUNK; k++) {
            Desc *d = &c->desc[k];
            if (!load_rlx(&d->registered)) continue;
            lock(&d->lock, RANK_POLL);
            d->registered = false;
            unlock(&d->lock);
            desc_look_again((int)i * CHUNK + k, list);
        }
    }
}

static NOINLINE int64_t begin_again(int64_t deadline, GList *list) {
    if (load_rlx(&anew)) desc_sweep(list);
    return load_rlx(&uring_gone) ? uring_collect_lost(deadline, list) : deadline;
}

/* The kernel has forgotten every registration. Any lock may be held. */
static void poller_lost(void) {
    store_seq(&anew, 1);
    uring_lost();
}

INLINE Desc *netpoll_expect(int fd) {
    Desc *d = desc_at(fd);
    __builtin_prefetch(d, 1);
    return d;
}
INLINE void netpoll_expect_soon(Desc *d) {
    if (unlikely(d == NULL)) return;
    __builtin_prefetch(load_rlx(&d->q[DIR_READ].head), 1);
    __builtin_prefetch(load_rlx(&d->reader), 1);
}

/* With ten thousand connections the entry, the waiter on its stack and the G of an event are cache
 * misses that depend on each other. So two passes over the batch prefetch them first, and the
 * misses of its events overlap. An event of no entry may be of a stranger's set, under the poller's
 * number: to wait there again would bring it again at once. */
static void poll_kernel(int64_t deadline, GList *list) {
    KEvent ev[KPOLL_BATCH];
    Desc *at[KPOLL_BATCH];
    bool strange = false;
    int n = kpoll_wait(deadline, ev);
    for (int i = 0; i < n; i++) at[i] = netpoll_expect(ev[i].fd);
    for (int i = 0; i < n; i++) netpoll_expect_soon(at[i]);
    for (int i = 0; i < n; i++) {
        if (unlikely(ev[i].what & EVENT_SOURCE)) uring_collect(list);
        else strange |= at[i] == NULL || !netpoll_event(at[i], ev[i].seq, ev[i].what, list);
    }
    if (unlikely(strange)) kpoll_check();
}

/* A thread sleeps in the poller. */
static bool netpoll_sleeping(void) { return load_seq(&blocking) != 0; }

/* On g0, or the monitor; no lock held. */
void netpoll(int64_t deadline, GList *list) {
    if (unlikely((load_rlx(&anew) | load_rlx(&uring_gone)) != 0))
        deadline = begin_again(deadline, list);
    if (deadline == 0) {
        if (load_rlx(&suspects)) pass(coarse_now(), list);
        if (load_rlx(&uring_pending)) uring_submit(list);
        poll_kernel(0, list);
        return;
    }
    int64_t now = 0;
    if (load_rlx(&suspects)) pass(now = os_now(), list);
    store_rlx(&blocking, 1);
    fence_full(); /* pairs with desc_trust_slow's, and with commit_put's load of blocking */
    int64_t limit = load_rlx(&suspects) ? period() : GORT_FOREVER;
    if (load_rlx(&uring_pending)) uring_submit(list);
    if (list->head || load_rlx(&anew)) deadline = 0;
    if (limit != GORT_FOREVER && deadline != 0) {
        if (now == 0) now = os_now();
        if (time_left(deadline, now) > limit) deadline = time_after(now, limit);
    }
    poll_kernel(deadline, list);
    store_rlx(&blocking, 0);
}

void netpoll_break(void) { kpoll_break(); }

/* After uring_commit the operation, and the stack it is on, may be gone. */
static void commit_put(M *m, void *arg) {
    UringOp *op = arg;
    void (*put)(M *, void *) = op->put;
    void *put_arg = op->arg;
    uint32_t n = uring_commit();
    put(m, put_arg);
    if (!uring_due(n) && !netpoll_sleeping()) return;
    if (uring_hand_over() && netpoll_sleeping()) netpoll_break();
}

bool netpoll_file(M **m, UringOp *op) {
    op->gp = self(*m);
    if (!uring_put_locked(op)) return false;
    add_seq(&sched.poll_waiters, 1);
    *m = park_commit(*m, commit_put, op, WAIT_IO);
    return true;
}

/* The limit on descriptors stays until a call of the library meets it. Go raises the soft limit at
 * its start and restores it in the children, all of which it makes itself. Here libc makes them
 * (posix_spawn, system, popen, vfork), where it cannot be restored for the child alone, and a child
 * that uses select(2), or closes all numbers up to the limit, must find the limit that the program
 * was given. A program that needs more gets all there is, unless it has set the limit itself. */
static uint64_t given; /* the soft limit when the runtime began */

static bool get_limit(struct rlimit *lim) {
    return os_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)lim, 0, 0) == 0;
}

bool netpoll_more_numbers(long error) {
    struct rlimit lim;
    if (likely(error != -EMFILE) || !get_limit(&lim) || lim.rlim_cur != load_rlx(&given) ||
        lim.rlim_cur >= lim.rlim_max)
        return false;
    lim.rlim_cur = lim.rlim_max;
    return os_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&lim, 0, 0, 0) == 0;
}

int netpoll_start(void) {
    struct rlimit lim = {0};
    store_rlx(&given, get_limit(&lim) ? (uint64_t)lim.rlim_cur : 0);
    store_seq(&suspects, 0);
    store_seq(&blocking, 0);
    store_seq(&anew, 0);
    store_seq(&sched.poll_waiters, 0);
    int r = kpoll_open(poller_lost);
    if (r == 0) uring_start();
    return r == 0 || r == -ENOMEM ? r : -EAGAIN; /* as gort_main says it */
}

/* The runtime has ended: forgets the goroutines that wait, and all registrations. Plain threads
 * stay linked. No other thread is in netpoll() or in a goroutine's call any more. */
void netpoll_stop(void) {
    uring_stop();
    kpoll_close();
    for (uint32_t i = 0; i < load_acq(&chunks_end); i++) {
        Chunk *c = load_acq(&desc_table[i]);
        for (int k = 0; c && k < CHUNK; k++) {
            Desc *d = &c->desc[k];
            if (load_rlx(&d->state) == 0 && !d->registered && !d->q[0].head && !d->q[1].head &&
                !d->asleep[0])
                continue;
            lock(&d->lock, RANK_POLL);
            d->registered = false;
            d->asleep[0] = 0;
            desc_let_go(d, (int)(i * CHUNK) + k);
            d->q[DIR_READ] = d->q[DIR_WRITE] = (WaitQueue){0};
            unlock(&d->lock);
        }
        if (c) memset(c->mark, 0, sizeof c->mark);
    }
}
