/*
 * poll, select and epoll_wait.
 *
 * First the kernel is asked without waiting; what finds nothing and may wait parks in gort_poll. An
 * epoll descriptor is itself one that can be polled. With a signal mask to be in force while
 * waiting, libc's own is called on a handed-off thread: the mask is a thread's.
 */
#include "inside.h"

#define FEW 16

static int64_t after_ms(int ms) { return ms < 0 ? GORT_FOREVER : after(ms * GORT_MS); }

/* How long gort_poll may wait at most, rounded up; -1: for ever. */
static int ms_until(int64_t deadline) {
    if (deadline == GORT_FOREVER) return -1;
    int64_t left = time_left(deadline, gort_now());
    if (left == 0) return 0;
    return left / GORT_MS > 1000000000 ? 1000000000 : (int)((left + GORT_MS - 1) / GORT_MS);
}

static bool duration(const struct timespec *ts, int64_t *deadline) {
    *deadline = GORT_FOREVER;
    if (ts == NULL) return true;
    if (ts->tv_sec < 0 || !valid_time(ts)) return false;
    if (ts->tv_sec < GORT_FOREVER / GORT_SEC / 2) *deadline = after((int64_t)ts->tv_sec * GORT_SEC + ts->tv_nsec);
    return true;
}

/* A count, or -errno. */
static long poll_until(struct pollfd *fds, nfds_t n, int64_t deadline) {
    for (;;) {
        int ms = ms_until(deadline);
        int r = gort_poll(fds, n, ms);
        if (r != 0 || ms == 0) return r;
    }
}

HOOK int poll(struct pollfd *fds, nfds_t n, int timeout) {
    if (!runner(poll)) return libc(poll)(fds, n, timeout);
    long r = poll_many(fds, n);
    if (r != 0 || timeout == 0) return (int)returned(r);
    if (!here()) return libc(poll)(fds, n, timeout);
    Stay s;
    stay(&s);
    return (int)result(&s, poll_until(fds, n, after_ms(timeout)));
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
HOOK int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size) {
    if (size / sizeof *fds < n) __chk_fail();
    return poll(fds, n, timeout);
}

typedef struct Masked {
    struct pollfd *fds;
    nfds_t n;
    fd_set *r, *w, *e;
    const struct timespec *ts;
    const sigset_t *mask;
    struct epoll_event *events;
    int fd, max, timeout;
} Masked;

static long ppoll_blocking(void *arg) {
    Masked *k = arg;
    return libc(ppoll)(k->fds, k->n, k->ts, k->mask);
}

HOOK int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask) {
    if (!runner(ppoll)) return libc(ppoll)(fds, n, ts, mask);
    if (mask == NULL && (ts == NULL || (ts->tv_sec >= 0 && valid_time(ts)))) {
        long r = poll_many(fds, n);
        if (r != 0 || (ts && ts->tv_sec == 0 && ts->tv_nsec == 0)) return (int)returned(r);
    }
    if (!here()) return libc(ppoll)(fds, n, ts, mask);
    int64_t deadline;
    if (!duration(ts, &deadline)) return (int)returned(-EINVAL);
    Stay s;
    stay(&s);
    if (mask) {
        Masked k = {.fds = fds, .n = n, .ts = ts, .mask = mask};
        int r = (int)gort_blocking(ppoll_blocking, &k);
        stay_end(&s);
        return r;
    }
    return (int)result(&s, poll_until(fds, n, deadline));
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask, size_t size);
HOOK int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask, size_t size) {
    if (size / sizeof *fds < n) __chk_fail();
    return ppoll(fds, n, ts, mask);
}

/* ---- select --------------------------------------------------------------------------------- */

static bool in(const fd_set *set, int fd) {
    return set && ((const unsigned long *)(const void *)set)[fd / 64] >> fd % 64 & 1;
}
static void put(fd_set *set, int fd, bool on) {
    if (set == NULL) return;
    unsigned long *word = &((unsigned long *)(void *)set)[fd / 64], bit = 1UL << fd % 64;
    *word = on ? *word | bit : *word & ~bit;
}

static nfds_t to_poll(struct pollfd *fds, int n, fd_set *r, fd_set *w, fd_set *e) {
    nfds_t k = 0;
    for (int fd = 0; fd < n; fd++) {
        short events = 0;
        if (in(r, fd)) events |= POLLIN | POLLRDNORM | POLLRDBAND;
        if (in(w, fd)) events |= POLLOUT | POLLWRNORM | POLLWRBAND;
        if (in(e, fd)) events |= POLLPRI;
        if (events && fds) fds[k] = (struct pollfd){.fd = fd, .events = events};
        k += events != 0;
    }
    return k;
}

/* The sets as select leaves them: a count, or -EBADF with the sets as they were. */
static long from_poll(const struct pollfd *fds, nfds_t n, fd_set *r, fd_set *w, fd_set *e) {
    long bits = 0;
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents & POLLNVAL) return -EBADF;
    for (nfds_t i = 0; i < n; i++) {
        short got = fds[i].revents, want = fds[i].events;
        bool readable = (want & POLLIN) && (got & (POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR));
        bool writable = (want & POLLOUT) && (got & (POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR));
        bool urgent = (want & POLLPRI) && (got & POLLPRI);
        if (want & POLLIN) put(r, fds[i].fd, readable);
        if (want & POLLOUT) put(w, fds[i].fd, writable);
        if (want & POLLPRI) put(e, fds[i].fd, urgent);
        bits += readable + writable + urgent;
    }
    return bits;
}

static long select_until(int n, fd_set *r, fd_set *w, fd_set *e, int64_t deadline) {
    struct pollfd few[FEW], *fds = few;
    nfds_t k = to_poll(NULL, n, r, w, e);
    if (k > FEW && (fds = malloc(k * sizeof *fds)) == NULL) return -ENOMEM;
    to_poll(fds, n, r, w, e);
    long result = poll_until(fds, k, deadline);
    if (result >= 0) result = from_poll(fds, k, r, w, e);
    if (fds != few) free(fds);
    return result;
}

HOOK int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e, struct timeval *restrict tv) {
    if (!here() || n < 0) return libc(select)(n, r, w, e, tv);
    int64_t deadline = GORT_FOREVER;
    if (tv) {
        if (tv->tv_sec < 0 || tv->tv_usec < 0) return (int)returned(-EINVAL);
        if (tv->tv_sec < GORT_FOREVER / GORT_SEC / 2) deadline = after((int64_t)tv->tv_sec * GORT_SEC + tv->tv_usec * GORT_US);
    }
    Stay s;
    stay(&s);
    long done = select_until(n, r, w, e, deadline);
    if (tv && done >= 0) { /* Linux: what is left */
        int64_t left = deadline == GORT_FOREVER ? 0 : time_left(deadline, gort_now());
        *tv = (struct timeval){.tv_sec = left / GORT_SEC, .tv_usec = left % GORT_SEC / GORT_US};
    }
    return (int)result(&s, done);
}

static long pselect_blocking(void *arg) {
    Masked *k = arg;
    return libc(pselect)(k->fd, k->r, k->w, k->e, k->ts, k->mask);
}

HOOK int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                 const struct timespec *restrict ts, const sigset_t *restrict mask) {
    if (!here() || n < 0) return libc(pselect)(n, r, w, e, ts, mask);
    int64_t deadline;
    if (!duration(ts, &deadline)) return (int)returned(-EINVAL);
    Stay s;
    stay(&s);
    if (mask) {
        Masked k = {.fd = n, .r = r, .w = w, .e = e, .ts = ts, .mask = mask};
        int done = (int)gort_blocking(pselect_blocking, &k);
        stay_end(&s);
        return done;
    }
    return (int)result(&s, select_until(n, r, w, e, deadline));
}

/* ---- epoll ---------------------------------------------------------------------------------- */

static long epoll_now(int fd, struct epoll_event *events, int max) {
#ifdef SYS_epoll_wait
    return sys(SYS_epoll_wait, fd, events, max, 0, 0, 0);
#else
    return sys(SYS_epoll_pwait, fd, events, max, 0, NULL, 0);
#endif
}

HOOK int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
    if (!runner(epoll_wait)) return libc(epoll_wait)(fd, events, max, timeout);
    long r = epoll_now(fd, events, max);
    if (r != 0 || timeout == 0) return (int)returned(r);
    if (!here()) return libc(epoll_wait)(fd, events, max, timeout);
    int64_t deadline = after_ms(timeout);
    Stay s;
    stay(&s);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        long ready = poll_until(&p, 1, deadline);
        if (ready < 0) return (int)result(&s, ready);
        r = epoll_now(fd, events, max);
        if (r != 0 || ready == 0) return (int)result(&s, r);
    }
}

static long epoll_blocking(void *arg) {
    Masked *k = arg;
    return libc(epoll_pwait)(k->fd, k->events, k->max, k->timeout, k->mask);
}

HOOK int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask) {
    if (mask == NULL) return epoll_wait(fd, events, max, timeout);
    if (!here()) return libc(epoll_pwait)(fd, events, max, timeout, mask);
    Masked k = {.fd = fd, .events = events, .max = max, .timeout = timeout, .mask = mask};
    Stay s;
    stay(&s);
    int r = (int)gort_blocking(epoll_blocking, &k);
    stay_end(&s);
    return r;
}
