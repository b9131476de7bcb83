/*
 * The kernel side of the poller: epoll.
 *
 * A descriptor is added once, edge-triggered, for both directions; the event's data is its number
 * and the sequence of its entry. Adding a known one modifies it, which makes the kernel report
 * anew what is ready; modifying an unknown one adds it. So kpoll_add() needs not know which it is,
 * and a number that was closed and reused behind our back is put right by it.
 *
 * Break. An eventfd, level-triggered. `broken` is set by the first break and cleared by the poll
 * that consumes it, so that further breaks cost one load. Only a blocking poll consumes it: a
 * non-blocking one, by another thread, would take it away from the sleeper it was meant for, who
 * is woken by the kernel but may not have run yet. The order matters: the poll reads the eventfd
 * and then clears `broken`; a break in between finds it set, writes nothing, and that is right,
 * since the poller is awake and looks at everything before it sleeps again. Should the write be
 * refused, the eventfd is asked for what it always is, writable, which wakes the sleeper too.
 *
 * Bare system calls only: it runs on g0 and in the monitor.
 */
#include "netpoll.h"

#ifdef __linux__

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define BATCH 32 /* few enough that what the kernel touched is in the cache still when it is read and answered */
#define WANTED (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

static int epfd = -1;
static int breakfd = -1;   /* break_lock */
static Lock break_lock;    /* a break may come while the runtime ends */
static uint32_t broken;    /* atomic */
static bool forced;        /* by asking for EPOLLOUT; written by who has set `broken`, then by who clears it */
static uint32_t no_pwait2; /* atomic: the kernel is older than 5.11 */
static int source_fd = -1;
static void (*source_fn)(GList *list);

static uint64_t data_of(int fd, uint32_t seq) { return (uint64_t)(uint32_t)fd << 32 | seq; }

static int control(int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event ev = {.events = events, .data.u64 = data};
    return (int)os_sys(SYS_epoll_ctl, epfd, op, fd, (long)&ev, 0, 0);
}

int kpoll_open(void) {
    int ep = os_fd_away((int)os_sys(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0, 0));
    if (ep < 0) return ep;
    int ev = os_fd_away((int)os_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0));
    if (ev < 0) {
        os_sys(SYS_close, ep, 0, 0, 0, 0, 0);
        return ev;
    }
    epfd = ep;
    int r = control(EPOLL_CTL_ADD, ev, EPOLLIN, data_of(ev, 0));
    lock(&break_lock, RANK_LEAF);
    breakfd = ev;
    store_rlx(&broken, 0);
    unlock(&break_lock);
    if (r < 0) kpoll_close();
    return r;
}

void kpoll_close(void) {
    lock(&break_lock, RANK_LEAF);
    int ev = breakfd;
    breakfd = -1;
    unlock(&break_lock);
    if (ev >= 0) os_sys(SYS_close, ev, 0, 0, 0, 0, 0);
    if (epfd >= 0) os_sys(SYS_close, epfd, 0, 0, 0, 0, 0);
    epfd = source_fd = -1;
}

int kpoll_source(int fd, void (*source)(GList *list)) {
    int r = control(EPOLL_CTL_ADD, fd, EPOLLIN, data_of(fd, 0));
    if (r < 0) return r;
    source_fn = source;
    store_rel(&source_fd, fd);
    return 0;
}

/* With the entry's lock. What should be known is modified first, the other way round added. */
int kpoll_add(int fd, uint32_t seq, bool known) {
    uint64_t data = data_of(fd, seq);
    int gone = 0;
    for (;; known = !known) {
        int r = control(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, WANTED, data);
        if (r == 0) return gone;
        if (r != (known ? -ENOENT : -EEXIST)) return r;
        gone = known ? KPOLL_GONE : 0;
    }
}

void kpoll_del(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }

void kpoll_break(void) {
    static const uint64_t one = 1;
    uint32_t no = 0;
    if (load_seq(&broken) != 0 || !cas_seq(&broken, &no, 1)) return;
    lock(&break_lock, RANK_LEAF);
    long r = breakfd >= 0 ? -EINTR : 0;
    for (int tries = 0; r < 0 && tries < 20; tries++) { /* or the sleeper is lost */
        forced = tries & 1;
        if (forced) r = control(EPOLL_CTL_MOD, breakfd, EPOLLIN | EPOLLOUT, data_of(breakfd, 0));
        else r = os_write(breakfd, &one, sizeof one);
    }
    if (r < 0) store_seq(&broken, 0);
    unlock(&break_lock);
}

static void consume_break(void) {
    uint64_t many;
    os_sys(SYS_read, breakfd, (long)&many, sizeof many, 0, 0, 0);
    for (int tries = 0; forced && tries < 10; tries++)
        forced = control(EPOLL_CTL_MOD, breakfd, EPOLLIN, data_of(breakfd, 0)) < 0;
    store_seq(&broken, 0);
}

/* Until the deadline, or in whole milliseconds, rounded up, on an older kernel. */
static int wait_events(struct epoll_event *ev, int64_t deadline) {
    if (deadline == 0) return (int)os_sys(SYS_epoll_pwait, epfd, (long)ev, BATCH, 0, 0, 0);
    int64_t left = deadline == GORT_FOREVER ? -1 : deadline - os_now();
    if (deadline != GORT_FOREVER && left < 0) left = 0;
    if (!load_rlx(&no_pwait2)) {
        struct timespec ts = {left / GORT_SEC, left % GORT_SEC};
        int n = (int)os_sys(SYS_epoll_pwait2, epfd, (long)ev, BATCH, left < 0 ? 0 : (long)&ts, 0, 0);
        if (n != -ENOSYS && n != -EPERM) return n;
        store_rlx(&no_pwait2, 1);
    }
    int64_t ms = left < 0 ? -1 : (left + GORT_MS - 1) / GORT_MS;
    if (ms > INT32_MAX) ms = INT32_MAX;
    return (int)os_sys(SYS_epoll_pwait, epfd, (long)ev, BATCH, ms, 0, 0);
}

static uint32_t what_of(uint32_t events) {
    uint32_t what = 0;
    if (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) what |= EVENT_READ;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) what |= EVENT_WRITE;
    if (events & (EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) what |= EVENT_HUNG;
    return what;
}

static int fd_of(const struct epoll_event *ev) { return (int)(ev->data.u64 >> 32); }

/* An interrupted wait is an empty one: the caller looks around and comes back. */
void kpoll_wait(int64_t deadline, GList *list) {
    struct epoll_event ev[BATCH];
    Desc *at[BATCH];
    int n = wait_events(ev, deadline);
    for (int i = 0; i < n; i++) at[i] = netpoll_expect(fd_of(&ev[i]));
    for (int i = 0; i < n; i++) netpoll_expect_soon(at[i]);
    for (int i = 0; i < n; i++) {
        int fd = fd_of(&ev[i]);
        if (fd == breakfd) {
            if (deadline != 0) consume_break();
        } else if (fd == load_acq(&source_fd)) {
            source_fn(list);
        } else if (likely(at[i] != NULL)) {
            netpoll_event_at(at[i], (uint32_t)ev[i].data.u64, what_of(ev[i].events), list);
        }
    }
}

#endif
