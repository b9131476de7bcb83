/*
 * gort_poll: poll(2), blocking the goroutine only.
 *
 * Asks the kernel without waiting; if nothing is ready, links a waiter into every descriptor's
 * entry, for the directions wanted, parks, and asks again. As in netpoll.c, the counts of edges are
 * sampled before asking and compared in the lock when linking, so no event in between is lost.
 *
 * Several entries, one wait. Their locks, perhaps thousands, cannot all be held until the stack is
 * left, so an event may hit a waiter before its goroutine has parked. PollGroup.state is ARMING
 * while linking; poll_commit, run once the stack is left, turns it into PARKED. A hit exchanges HIT
 * in: if it found PARKED it claims the goroutine; if ARMING, poll_commit finds HIT and readies the
 * goroutine. The deadline is armed before poll_commit runs, and the goroutine may run elsewhere by
 * then; so it may after a hit, before poll_commit returns. PollGroup.lock keeps the frame there:
 * taken before the park, given back by poll_commit as the last it does with the group.
 *
 * A regular file is always ready and never waits. A descriptor that the poller refuses makes the
 * wait a paced one. Priority and hang-up conditions count as edges of the reading direction, so an
 * unread byte is an edge for a gort_poll that does not ask for it. To register makes the kernel
 * report anew what is ready; so an old registration is trusted, and a hung descriptor, which is
 * registered anew for each wait, makes the wait a paced one after CREDIT of them (wait.c). A plain
 * thread uses poll(2) itself, with an eventfd beside the descriptors for gort_close.
 */
#include "io/fdcall.h"
#include "base/sysfault.h"
#include "sched/alloc.h"
#include "sched/goexit.h"
#include "sync/sema.h"

#include <stdlib.h>

#define FEW 4

/* One descriptor of a gort_poll, with a waiter for either direction. */
typedef struct PollWatch {
    Desc *d;
    uint32_t seq;
    uint32_t life; /* under the hook: the number's, when the call began; 0: it was being closed */
    uint32_t edges[DIRS];
    Waiter w[DIRS];
} PollWatch;

typedef struct Poll {
    struct pollfd *fds;
    nfds_t n;
    PollWatch *watch;
    PollGroup group;
    M *m;
    bool pace;
    uint8_t vain; /* waits so far, up to 255 */
} Poll;

static bool wants(const struct pollfd *p, int dir) {
    short read = POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND | POLLRDHUP;
    bool writes = p->events & (POLLOUT | POLLWRNORM | POLLWRBAND);
    /* nothing asked for: still POLLHUP, POLLERR */
    return dir == DIR_WRITE ? writes : (p->events & read) || !writes;
}

static void poll_sample(Poll *p) {
    for (nfds_t i = 0; i < p->n; i++) {
        PollWatch *k = &p->watch[i];
        k->w[DIR_READ].linked = k->w[DIR_WRITE].linked = false;
        if (k->d == NULL) continue;
        for (int dir = 0; dir < DIRS; dir++) k->edges[dir] = load_acq(&k->d->edges[dir]);
    }
}

/* Under the hook: closed since the call began, unknown to the entry. */
static bool watch_is_over(const Poll *p, nfds_t i) {
    DescNote *note = desc_note_of(p->fds[i].fd);
    const PollWatch *k = &p->watch[i];
    return unlikely(note != NULL) && k->d && k->life != 0 && !note_known(note, k->life);
}

/* As settled_locked does for a Call (wait.c). False: no edge will come, or there were too many. */
static bool reported_locked(const Poll *p, Desc *d, int fd) {
    if (d->registered && d->hung && p->vain > CREDIT) return false;
    if (!d->registered || d->hung) return desc_register(d, fd) == 0;
    desc_trust(d, fd);
    return true;
}

/* Links the watch into its entry. 0; 1: an edge came since the sample; -EBADF. */
static int link_watch(Poll *p, nfds_t i, int wake_fd) {
    PollWatch *k = &p->watch[i];
    Desc *d = k->d;
    int r = 0;
    lock(&d->lock, RANK_POLL);
    if (!desc_lives(d, k->seq) || watch_is_over(p, i)) r = -EBADF;
    for (int dir = 0; dir < DIRS && r == 0 && wake_fd < 0; dir++)
        if (wants(&p->fds[i], dir) && load_rlx(&d->edges[dir]) != k->edges[dir]) r = 1;
    if (r == 0 && wake_fd < 0 && !reported_locked(p, d, p->fds[i].fd)) p->pace = true;
    if (unlikely(k->life == 0)) p->pace = true; /* adrift, as a Call (wait.c) */
    for (int dir = 0; dir < DIRS && r == 0; dir++) {
        if (!wants(&p->fds[i], dir)) continue;
        if (wake_fd >= 0 && k->w[DIR_READ].linked) continue;
        k->w[dir] = (Waiter){.gp = p->group.gp,
                             .ticket = p->group.ticket,
                             .wake_fd = wake_fd,
                             .group = wake_fd < 0 ? &p->group : NULL};
        waiter_link(wake_fd < 0 ? &d->q[dir] : &d->threads, &k->w[dir], false);
        desc_note(p->fds[i].fd);
        if (wake_fd < 0) d->polled[dir] = true;
    }
    unlock(&d->lock);
    return r;
}

/* Unlinks every waiter; -EBADF where a descriptor was closed. */
static int unlink_all(Poll *p, bool thread) {
    int r = 0;
    for (nfds_t i = 0; i < p->n; i++) {
        PollWatch *k = &p->watch[i];
        if (k->d == NULL) continue;
        lock(&k->d->lock, RANK_POLL);
        for (int dir = 0; dir < DIRS; dir++)
            if (k->w[dir].linked)
                waiter_unlink(thread ? &k->d->threads : &k->d->q[dir], &k->w[dir]);
        if (desc_seq(k->d) != k->seq) r = -EBADF;
        unlock(&k->d->lock);
    }
    return r;
}

/* The stack is left: from here on a hit readies the goroutine. After an earlier hit this does. */
static void poll_commit(M *m, void *arg) {
    PollGroup *g = arg;
    G *gp = g->gp;
    uint32_t ticket = g->ticket, arming = GROUP_ARMING;
    bool hit = !cas_seq(&g->state, &arming, GROUP_PARKED);
    unlock(&g->lock);
    if (!hit || !wait_claim(gp, ticket)) return;
    ready(m, gp);
    sub_seq(&sched.poll_waiters, 1);
}

/* The runtime has ended: the entries know of no waiter any more (netpoll_stop). */
static void watch_abandoned(ExitHook *h) { quiet_free(h->object); }

/* False: only a deadline or a context ends the wait, and the deadlock's report counts no event. */
static bool watches_any(const Poll *p) {
    for (nfds_t i = 0; i < p->n; i++)
        if (p->watch[i].d) return true;
    return false;
}

/* Parks until a hit, the deadline or the next look of a paced wait. */
static void poll_park(Poll *p, int64_t deadline) {
    ExitHook hook = {.abandon = watch_abandoned, .object = p->watch};
    int64_t soon = p->pace ? time_after(os_now(), PACE) : deadline;
    bool counted = watches_any(p);
    int ended = 0;
    if (p->n > FEW) exit_hook_push(p->group.gp, &hook);
    if (counted) add_seq(&sched.poll_waiters, 1);
    lock(&p->group.lock, RANK_POLL);
    p->m = park_commit_until(p->m, poll_commit, &p->group, WAIT_IO,
                             soon < deadline ? soon : deadline, p->group.ticket, &ended);
    if (ended && counted) sub_seq(&sched.poll_waiters, 1);
    lock(&p->group.lock, RANK_POLL);
    unlock(&p->group.lock);
    if (p->n > FEW) exit_hook_pop(p->group.gp, &hook);
}

/* 0: ask again; -EBADF; -ETIMEDOUT. */
static int poll_wait_parked(Poll *p, int64_t deadline) {
    int r = 0;
    p->group.gp = self(p->m);
    p->group.ticket = wait_begin(p->group.gp);
    store_seq(&p->group.state, GROUP_ARMING);
    p->pace = false;
    for (nfds_t i = 0; i < p->n && r == 0; i++)
        if (p->watch[i].d) r = link_watch(p, i, -1);
    if (r == 0) poll_park(p, deadline);
    int closed = unlink_all(p, false);
    return closed ? closed : r < 0 ? r : 0;
}

static int poll_wait_thread(Poll *p, int64_t deadline) {
    struct pollfd *set = sysfault_alloc() ? NULL : malloc((p->n + 1) * sizeof *set);
    if (set == NULL) return -ENOMEM;
    int wake_fd = wake_fd_new(), r = 0;
    uint32_t life = kept_life(wake_fd);
    for (nfds_t i = 0; i < p->n; i++) set[i] = p->fds[i];
    set[p->n] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    p->pace = wake_fd < 0 || ender_of(self(p->m)) != NULL; /* a context writes to no descriptor */
    for (nfds_t i = 0; i < p->n && r == 0 && wake_fd >= 0; i++)
        if (p->watch[i].d) r = link_watch(p, i, wake_fd);
    if (r == 0) thread_ppoll(p->m, set, p->n + 1, deadline, p->pace);
    int closed = unlink_all(p, true);
    if (wake_fd >= 0) kept_close(wake_fd, life);
    free(set);
    return closed ? closed : r < 0 ? r : 0;
}

/* One was closed since the call began: the answer may be of its number's next owner. */
static bool closed_since(Poll *p) {
    for (nfds_t i = 0; i < p->n; i++)
        if (p->watch[i].d && (desc_seq(p->watch[i].d) != p->watch[i].seq || watch_is_over(p, i)))
            return true;
    return false;
}

/* An entry is missing for want of memory: neither an event nor a close would find a waiter. */
static bool cannot_wait(const Poll *p) {
    for (nfds_t i = 0; i < p->n; i++)
        if (unlikely(p->fds[i].fd >= 0 && p->watch[i].d == NULL)) return true;
    return false;
}

static int poll_run(Poll *p, int64_t deadline) {
    for (;;) {
        poll_sample(p);
        int r = (int)poll_now(p->fds, p->n);
        if (r == -EINTR) continue;
        if (r > 0 && closed_since(p)) return -EBADF;
        if (r != 0) return r;
        if (wait_over(p->m, deadline)) return use_cause(p->m);
        if (cannot_wait(p)) return -ENOMEM;
        if (p->vain < UINT8_MAX) p->vain++;
        r = is_goroutine(p->m) ? poll_wait_parked(p, deadline) : poll_wait_thread(p, deadline);
        if (r < 0) return r;
    }
}

static void note_lives(Poll *p) {
    for (nfds_t i = 0; i < p->n; i++) {
        DescNote *note = desc_note_of(p->fds[i].fd);
        p->watch[i].life = unlikely(note != NULL) ? note_life(note) : 1;
        if (unlikely(p->watch[i].life == 0)) p->watch[i].life = life_awaited(p->fds[i].fd);
    }
}

static int poll_begin(Poll *p, int64_t deadline) {
    note_lives(p);
    p->m = enter();
    for (nfds_t i = 0; i < p->n; i++) {
        Desc *d = p->fds[i].fd < 0 ? NULL : desc_of(p->fds[i].fd);
        p->watch[i].d = d;
        p->watch[i].seq = d ? desc_seq(d) : 0;
    }
    int r = poll_run(p, wait_limit(p->m, deadline));
    if (r > 0) tsan_acquire(&io_order);
    leave(p->m);
    return r;
}

int poll_until(struct pollfd *fds, nfds_t n, int64_t deadline) {
    PollWatch few[FEW];
    Poll p = {.fds = fds, .n = n, .watch = few};
    if (n > 1 << 24) return -EINVAL;
    if (n > 0 && fds == NULL) return -EFAULT;
    if (n > FEW && (p.watch = quiet_alloc(n * sizeof(PollWatch))) == NULL) return -ENOMEM;
    int r = poll_begin(&p, deadline);
    if (p.watch != few) quiet_free(p.watch);
    return r;
}

EXPORT int gort_poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
    if (in_forked_child()) return -ENOTCONN;
    int64_t deadline = timeout_ms < 0 ? GORT_FOREVER : 0;
    if (timeout_ms > 0) deadline = time_after(os_now(), timeout_ms * GORT_MS);
    int r = poll_until(fds, n, deadline);
    /* a call that only looks has no wait that the context in use could end */
    return timeout_ms == 0 && (r == -ECANCELED || r == -ETIMEDOUT) ? 0 : r;
}

EXPORT int gort_poll_until(struct pollfd *fds, nfds_t n, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    int r = poll_until(fds, n, deadline);
    return r == 0 ? -ETIMEDOUT : r;
}
