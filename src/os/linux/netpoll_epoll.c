/*
 * The kernel side of the poller: epoll.
 *
 * A descriptor is added once, edge-triggered, for both directions; the event's data is its number
 * and its entry's sequence. To modify a known one makes the kernel report anew what is ready.
 * kpoll_add() tries both ways, so it also puts right a number that was closed and reused unseen.
 *
 * Break. An eventfd that nobody writes to is asked for what it always is: writable. The first break
 * sets `broken`, and the poll that consumes it clears it, so that further breaks cost one load.
 * Only a blocking poll consumes it: a non-blocking one, of another thread, would take it away from
 * the sleeper, which the kernel has woken but which may not have run yet. The poll stops asking,
 * then clears `broken`: a break in between finds it set and does nothing, rightly, since the poller
 * is awake and looks at everything before it sleeps again.
 *
 * Our own numbers may be closed behind our back, by closefrom(3) or a loop over all numbers, and
 * then be a stranger's. So nothing is written to them or read from them, and what we tell an epoll
 * set names a second number of ours: the kernel answers EBADF, EINVAL or ENOENT unless this set
 * still holds this file under this number. We ask after any error, and the monitor before it sleeps
 * deeply. If it is lost, both are made anew (`remake`), and netpoll() registers the waiters there
 * (netpoll.c, `anew`). No break reaches a thread that sleeps in the lost set: it gets the
 * preemption signal, which no epoll wait survives. A lost number is not closed.
 *
 * Bare system calls only: it runs on g0 and in the monitor.
 */
#include "os/poller.h"
#include "base/san.h"
#include "runtime.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define MOST_REMADE 100 /* attempts */
#define WANTED (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

static int epfd = -1;      /* atomic; break_lock to write */
static int breakfd = -1;   /* likewise */
static Lock break_lock;    /* a break may come while the runtime ends */
static uint32_t broken;    /* atomic */
static bool armed;         /* break_lock: EPOLLOUT is asked for */
static uint32_t no_pwait2; /* atomic: the kernel is older than 5.11, or valgrind that */
static int source_fd = -1;
static void (*poller_is_lost)(void); /* break_lock */

static uint64_t data_of(int fd, uint32_t seq) { return (uint64_t)(uint32_t)fd << 32 | seq; }

static int control(int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event ev = {.events = events, .data.u64 = data};
    return (int)sys6(SYS_epoll_ctl, load_rlx(&epfd), op, fd, &ev, 0, 0);
}

/* ---- our own descriptors --------------------------------------------------------------------- */

/* The kernel's answers where one of the two numbers is not what it was. */
static bool means_lost(int r) {
    return r == -EBADF || r == -EINVAL || r == -ENOENT || r == -EPERM || r == -ELOOP;
}

/* break_lock. */
static int ask_break_locked(bool arm) {
    int r = control(EPOLL_CTL_MOD, breakfd, arm ? EPOLLOUT : 0, data_of(breakfd, 0));
    if (r == 0) armed = arm;
    return r;
}

static int open_locked(void) {
    int ep = os_fd_away((int)sys6(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0, 0));
    if (ep < 0) return ep;
    int ev = os_fd_away((int)sys6(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0));
    struct epoll_event none = {.data.u64 = data_of(ev, 0)};
    int r = ev < 0 ? ev : (int)sys6(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, ev, &none, 0, 0);
    if (r < 0) {
        if (ev >= 0 && means_lost(r)) return r; /* at once lost: they are strangers' */
        if (ev >= 0) sys6(SYS_close, ev, 0, 0, 0, 0, 0);
        sys6(SYS_close, ep, 0, 0, 0, 0, 0);
        return r;
    }
    store_rlx(&epfd, ep);
    store_rlx(&breakfd, ev);
    armed = false;
    store_rlx(&broken, 0);
    return 0;
}

int kpoll_open(void (*lost)(void)) {
    lock(&break_lock, RANK_LEAF);
    poller_is_lost = lost;
    if (valgrind_runs()) store_rlx(&no_pwait2, 1); /* it would tell the user of a bug */
    int r = open_locked();
    unlock(&break_lock);
    return r;
}

void kpoll_close(void) {
    lock(&break_lock, RANK_LEAF);
    if (breakfd >= 0 && !means_lost(ask_break_locked(false))) {
        sys6(SYS_close, breakfd, 0, 0, 0, 0, 0);
        sys6(SYS_close, epfd, 0, 0, 0, 0, 0);
    }
    store_rlx(&epfd, -1);
    store_rlx(&breakfd, -1);
    store_rlx(&source_fd, -1);
    unlock(&break_lock);
}

/* Wakes the sleeper in the lost set. A thread on its way there finds the number closed. */
static void call_sleepers(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (load_acq(&m->alive) && load_rlx(&m->in_poll))
            os_tgkill(m->tid, settings.preempt_signal);
}

/* The program may still be closing, and take a new number before it is in use. */
static void remake_locked(void) {
    int r = open_locked();
    for (int tries = 0; means_lost(r) && tries < MOST_REMADE; tries++) r = open_locked();
    if (r < 0)
        fatal("the program has closed descriptors of the runtime, and cannot make new ones: %s",
              errno_word(r));
    store_rlx(&source_fd, -1);
    add_rlx(&sched.remade, 1);
    poller_is_lost();
    call_sleepers();
}

bool kpoll_check(void) {
    lock(&break_lock, RANK_LEAF);
    bool lost = breakfd >= 0 && means_lost(ask_break_locked(armed));
    if (lost) remake_locked();
    unlock(&break_lock);
    return lost;
}

int kpoll_watch(int fd) { return control(EPOLL_CTL_ADD, fd, 0, data_of(fd, 0)); }

bool kpoll_ours(int fd) {
    uint32_t events = fd == load_rlx(&source_fd) ? EPOLLIN : 0;
    return !means_lost(control(EPOLL_CTL_MOD, fd, events, data_of(fd, 0)));
}

int kpoll_source(int fd) {
    int r = control(EPOLL_CTL_ADD, fd, EPOLLIN, data_of(fd, 0));
    if (r == 0) store_rlx(&source_fd, fd);
    return r;
}

/* ---- the program's --------------------------------------------------------------------------- */

static int add_or_modify(int fd, uint32_t seq, bool known) {
    uint64_t data = data_of(fd, seq);
    int gone = 0;
    for (;; known = !known) {
        int r = control(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, WANTED, data);
        if (r == 0) return gone;
        if (r != (known ? -ENOENT : -EEXIST)) return r;
        gone = known ? KPOLL_GONE : 0;
    }
}

/* With the entry's lock. */
int kpoll_add(int fd, uint32_t seq, bool known) {
    int r = add_or_modify(fd, seq, known);
    if (likely(r != -EBADF && r != -EINVAL) || !kpoll_check()) return r;
    return add_or_modify(fd, seq, false);
}

void kpoll_del(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }

void kpoll_break(void) {
    uint32_t no = 0;
    if (load_rlx(&broken) != 0 || !cas_seq(&broken, &no, 1)) return;
    lock(&break_lock, RANK_LEAF);
    int r = breakfd >= 0 ? ask_break_locked(true) : 0;
    if (means_lost(r)) remake_locked(); /* wakes the sleeper, too */
    /* else the sleeper sleeps on */
    for (int tries = 0; r < 0 && tries < 20; tries++) r = ask_break_locked(true);
    store_seq(&broken, armed);
    unlock(&break_lock);
}

static void consume_break(void) {
    lock(&break_lock, RANK_LEAF);
    for (int tries = 0; armed && tries < 10; tries++) ask_break_locked(false);
    unlock(&break_lock);
    xchg_seq(&broken, 0);
    /* pairs with the breaker's fence: it sees 0 and breaks, or we see why it breaks */
    fence_after_rmw();
}

/* On an older kernel: in whole milliseconds, rounded up. */
static int wait_events(struct epoll_event *ev, int64_t deadline) {
    if (deadline == 0) return (int)sys6(SYS_epoll_pwait, load_rlx(&epfd), ev, KPOLL_BATCH, 0, 0, 0);
    int64_t left = deadline == GORT_FOREVER ? -1 : time_left(deadline, os_now());
    if (!load_rlx(&no_pwait2)) {
        struct timespec ts = {left / GORT_SEC, left % GORT_SEC};
        int n = (int)sys6(SYS_epoll_pwait2, load_rlx(&epfd), ev, KPOLL_BATCH, left < 0 ? NULL : &ts,
                          0, 0);
        if (n != -ENOSYS && n != -EPERM) return n;
        store_rlx(&no_pwait2, 1);
    }
    int64_t ms = left < 0 ? -1 : left / GORT_MS + (left % GORT_MS != 0);
    if (ms > INT32_MAX) ms = INT32_MAX;
    return (int)sys6(SYS_epoll_pwait, load_rlx(&epfd), ev, KPOLL_BATCH, ms, 0, 0);
}

static uint32_t what_of(uint32_t events) {
    uint32_t what = 0;
    if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) what |= EVENT_READ;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) what |= EVENT_WRITE;
    if (events & (EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) what |= EVENT_HUNG;
    return what;
}

/* Returns where a number is or was lost; else the kernel does not let us wait. */
static NOINLINE void wait_failed(int error) {
    if (kpoll_check() || means_lost(error)) return;
    fatal("cannot wait for descriptors: epoll_pwait(2) gives %s", errno_word(error));
}

/* An interrupted wait gives no events: the caller looks around and comes back. */
int kpoll_wait(int64_t deadline, KEvent *events) {
    struct epoll_event ev[KPOLL_BATCH];
    int n = wait_events(ev, deadline), used = 0;
    if (unlikely(n < 0 && n != -EINTR)) wait_failed(n);
    for (int i = 0; i < n; i++) {
        int fd = (int)(ev[i].data.u64 >> 32); /* see data_of */
        uint32_t what = what_of(ev[i].events);
        if (unlikely(fd == load_rlx(&breakfd))) {
            if (deadline != 0) consume_break();
            continue;
        }
        if (unlikely(fd == load_rlx(&source_fd))) what = EVENT_SOURCE;
        events[used++] = (KEvent){fd, (uint32_t)ev[i].data.u64, what};
    }
    return used;
}
