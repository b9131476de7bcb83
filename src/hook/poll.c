/* poll, select and epoll_wait. The kernel is asked first, without waiting; a call that finds
 * nothing and may wait parks in the core's poll. An epoll descriptor can itself be polled. Without
 * any descriptor the call is a sleep, and as those of sleep.c no context in use ends it. With a
 * signal mask, which belongs to a thread, libc's function is called in gort_blocking; where a
 * context is in use, in pieces, with a look at the context in between. */
#include "hook/hook_internal.h"

#define FEW 16

long poll_fd(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    return poll_ready(&p, 1);
}

static bool is_sleep(const struct pollfd *fds, nfds_t n) {
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].fd >= 0) return false;
    return true;
}

static long sleep_instead(int64_t deadline) { return core->sleep_until(deadline); }

static long poll_or_sleep(struct pollfd *fds, nfds_t n, int64_t deadline) {
    return is_sleep(fds, n) ? sleep_instead(deadline) : core->poll(fds, n, deadline);
}

static int64_t after_ms(int ms) { return ms < 0 ? GORT_FOREVER : deadline_after(ms * GORT_MS); }

HOOK int poll(struct pollfd *fds, nfds_t n, int timeout) {
    if (!runner(poll)) return libc(poll)(fds, n, timeout);
    long r = poll_ready(fds, n);
    if (r != 0 || timeout == 0) return (int)returned(r);
    if (!here()) return libc(poll)(fds, n, timeout);
    int64_t deadline = after_ms(timeout);
    return (int)returned(staying_once(poll_or_sleep(fds, n, deadline)));
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
HOOK int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size) {
    if (size / sizeof *fds < n) __chk_fail();
    return poll(fds, n, timeout);
}

/* With a signal mask. */
typedef struct Sets Sets;
typedef struct Masked {
    LibcCall call;
    int64_t deadline;
    bool in_ms; /* its timeout is not a timespec */
    Sets *sets; /* pselect's, which it empties; NULL: none */
    /* masked()'s: */
    int timeout; /* which argument */
    const int32_t *cause;
} Masked;
static int masked(Masked *v, LibcCall call, int timeout);

/* Of a thread that is a goroutine: with its mask changed, as goroutines wait (thread_masked). */
typedef struct Whole {
    struct pollfd *fds;
    nfds_t n;
    Sets *sets;
    int epoll, max;
    struct epoll_event *events;
    int64_t deadline;
} Whole;
static long ppoll_whole(void *arg) {
    Whole *w = arg;
    long r = poll_ready(w->fds, w->n);
    return r != 0 || w->deadline <= gort_now() ? r : poll_or_sleep(w->fds, w->n, w->deadline);
}
static long pselect_whole(void *arg);
static long epoll_whole(void *arg);

HOOK int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask) {
    if (!runner(ppoll) || (ts && !readable(ts, sizeof *ts))) return libc(ppoll)(fds, n, ts, mask);
    if (mask == NULL && (ts == NULL || (ts->tv_sec >= 0 && valid_time(ts)))) {
        long r = poll_ready(fds, n);
        if (r != 0 || (ts && ts->tv_sec == 0 && ts->tv_nsec == 0)) return (int)returned(r);
    }
    if (!here()) return libc(ppoll)(fds, n, ts, mask);
    int64_t deadline;
    if (!timeout_deadline(ts, &deadline)) return (int)returned(-EINVAL);
    if (mask && known.threads) {
        Whole w = {.fds = fds, .n = n, .deadline = deadline};
        return (int)returned(thread_masked(mask, ppoll_whole, &w));
    }
    if (mask) {
        Masked v = {.deadline = deadline};
        return masked(&v, LIBC_CALL(ppoll, fds, n, ts, mask, 0, 0), 2);
    }
    return (int)returned(staying_once(poll_or_sleep(fds, n, deadline)));
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask,
                size_t size);
HOOK int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask,
                     size_t size) {
    if (size / sizeof *fds < n) __chk_fail();
    return ppoll(fds, n, ts, mask);
}

/* ---- select --------------------------------------------------------------------------------- */

/* The kernel reads a set up to n or the end of its table of descriptors; the memory behind may not
 * be the caller's. So the kernel is asked first, with the caller's own sets, and a copy is kept for
 * the wait. If n is larger than an fd_set, table_end finds the end of the table. */
#define WORD 64
enum { READS, WRITES, URGENT, SETS };
struct Sets {
    int n;
    size_t words;
    unsigned long *set[SETS];  /* the caller's; NULL: none */
    unsigned long *kept[SETS]; /* as they were */
    unsigned long few[SETS * FD_SETSIZE / WORD];
};

/* A pending signal makes even this call EINTR. */
static long select_now(int n, void *r, void *w, void *e) {
    struct timespec none = {0, 0};
    long done;
    do done = sys(SYS_pselect6, n, r, w, e, &none, NULL);
    while (done == -EINTR);
    return done;
}

/* select(2) reports a number that is not open as an error; one behind its table, not at all. */
static bool in_table(int fd) {
    if (sys(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0) return true;
    unsigned long *set = calloc((size_t)fd / WORD + 1, sizeof *set);
    if (set == NULL) return false;
    set[fd / WORD] = 1UL << fd % WORD;
    long r = select_now(fd + 1, set, NULL, NULL);
    free(set);
    return r != 0;
}

/* n, or the end of the table where that comes first; its sizes are powers of two. */
static int table_end(int n) {
    for (long size = WORD; size < n; size *= 2)
        if (!in_table((int)size)) return (int)size;
    return n;
}

static bool sets_readable(int n, fd_set *const *sets) {
    size_t size = ((size_t)n + WORD - 1) / WORD * sizeof(long);
    for (int i = 0; i < SETS; i++)
        if (sets[i] && !readable(sets[i], size)) return false;
    return true;
}

/* -ENOMEM; -EFAULT: the kernel would say so, too. */
static int sets_keep(Sets *s, int n, fd_set *r, fd_set *w, fd_set *e) {
    fd_set *sets[SETS] = {r, w, e};
    s->n = n;
    if (n > FD_SETSIZE || !sets_readable(n, sets)) {
        s->n = table_end(n);
        if (!sets_readable(s->n, sets)) return -EFAULT;
    }
    s->words = ((size_t)s->n + WORD - 1) / WORD;
    unsigned long *at = s->few;
    if (s->words > FD_SETSIZE / WORD && (at = malloc(SETS * s->words * sizeof *at)) == NULL)
        return -ENOMEM;
    for (int i = 0; i < SETS; i++, at += s->words) {
        s->set[i] = (unsigned long *)(void *)sets[i];
        s->kept[i] = at;
        for (size_t k = 0; k < s->words; k++) at[k] = sets[i] ? s->set[i][k] : 0;
    }
    return 0;
}
static void sets_restore(Sets *s) {
    for (int i = 0; i < SETS; i++)
        for (size_t k = 0; s->set[i] && k < s->words; k++) s->set[i][k] = s->kept[i][k];
}

/* What each set asks of poll, and which answers put a number into it. */
#define MAY_READ (POLLIN | POLLRDNORM | POLLRDBAND)
#define MAY_WRITE (POLLOUT | POLLWRNORM | POLLWRBAND)
static const short set_asks[SETS] = {MAY_READ, MAY_WRITE, POLLPRI};
static const short set_gets[SETS] = {MAY_READ | POLLHUP | POLLERR, MAY_WRITE | POLLERR, POLLPRI};

static nfds_t to_poll(struct pollfd *fds, const Sets *s) {
    nfds_t k = 0;
    for (int fd = 0; fd < s->n; fd++) {
        short want = 0;
        for (int i = 0; i < SETS; i++)
            if (s->kept[i][fd / WORD] >> fd % WORD & 1) want |= set_asks[i];
        if (want && fds) fds[k] = (struct pollfd){.fd = fd, .events = want};
        k += want != 0;
    }
    return k;
}

/* Fills the empty sets as select leaves them: a count. */
static long from_poll(Sets *s, const struct pollfd *fds, nfds_t n) {
    long bits = 0;
    for (nfds_t k = 0; k < n; k++)
        for (int i = 0; i < SETS; i++) {
            if (!(fds[k].events & set_asks[i]) || !(fds[k].revents & set_gets[i])) continue;
            s->set[i][fds[k].fd / WORD] |= 1UL << fds[k].fd % WORD;
            bits++;
        }
    return bits;
}

/* Numbers behind the end of the table are not waited for. -EBADF: one in the table is not open. */
static long leave_out(struct pollfd *fds, nfds_t n) {
    if (poll_ready(fds, n) <= 0) return 0;
    for (nfds_t i = 0; i < n; i++) {
        if (!(fds[i].revents & POLLNVAL)) continue;
        if (in_table(fds[i].fd)) return -EBADF;
        fds[i].fd = -1;
    }
    return 0;
}

/* poll(2) gives POLLHUP and POLLERR unasked, and some sets do not count them. A descriptor that
 * gives nothing that counts is left out for a while, as -2 - fd. */
#define LEFT_OUT (10 * GORT_MS)
static int other_side(int fd) { return -2 - fd; }
static long leave_out_useless(struct pollfd *fds, nfds_t n) {
    for (nfds_t i = 0; i < n; i++) {
        if (fds[i].revents & POLLNVAL) return -EBADF; /* closed since leave_out */
        if (fds[i].revents) fds[i].fd = other_side(fds[i].fd);
    }
    return 0;
}
static void take_in_again(struct pollfd *fds, nfds_t n) {
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].fd < -1) fds[i].fd = other_side(fds[i].fd);
}

/* A count; 0: the deadline has passed. */
static long select_poll(Sets *s, struct pollfd *fds, nfds_t n, int64_t deadline) {
    int64_t until = deadline;
    for (;;) {
        long r = core->poll(fds, n, until), bits = r > 0 ? from_poll(s, fds, n) : 0;
        if (r < 0 || bits > 0) return r < 0 ? r : bits;
        if (r == 0 && until == deadline) return 0;
        if (r == 0) {
            take_in_again(fds, n);
            until = deadline;
        } else {
            if ((r = leave_out_useless(fds, n)) < 0) return r;
            int64_t soon = deadline_after(LEFT_OUT);
            until = soon < deadline ? soon : deadline;
        }
    }
}

/* Nothing is ready, and the sets are empty. */
static long select_wait(Sets *s, int64_t deadline) {
    struct pollfd few[FEW], *fds = few;
    nfds_t k = to_poll(NULL, s);
    if (k > FEW && (fds = malloc(k * sizeof *fds)) == NULL) return -ENOMEM;
    to_poll(fds, s);
    long r = leave_out(fds, k);
    if (r == 0) r = is_sleep(fds, k) ? sleep_instead(deadline) : select_poll(s, fds, k, deadline);
    if (r < 0) sets_restore(s);
    if (fds != few) free(fds);
    return r;
}

static long select_hooked(int n, fd_set *r, fd_set *w, fd_set *e, int64_t deadline) {
    Sets s;
    long done = sets_keep(&s, n, r, w, e);
    if (done != 0) return done;
    done = select_now(s.n, r, w, e);
    if (done == 0 && deadline > gort_now()) done = staying_once(select_wait(&s, deadline));
    if (s.kept[0] != s.few) free(s.kept[0]);
    return done;
}

HOOK int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                struct timeval *restrict tv) {
    if (!here() || n < 0 || (tv && !readable(tv, sizeof *tv))) return libc(select)(n, r, w, e, tv);
    int64_t deadline = GORT_FOREVER;
    if (tv) {
        if (tv->tv_sec < 0 || tv->tv_usec < 0) return (int)returned(-EINVAL);
        if (tv->tv_sec < GORT_FOREVER / GORT_SEC / 2 && tv->tv_usec < GORT_FOREVER / GORT_US / 2)
            deadline = deadline_after((int64_t)tv->tv_sec * GORT_SEC + tv->tv_usec * GORT_US);
    }
    long done = select_hooked(n, r, w, e, deadline);
    if (tv && deadline != GORT_FOREVER) { /* Linux: what is left */
        int64_t left = time_left(deadline, gort_now());
        *tv = (struct timeval){.tv_sec = left / GORT_SEC, .tv_usec = left % GORT_SEC / GORT_US};
    }
    return (int)returned(done);
}

static long pselect_whole(void *arg) {
    Whole *w = arg;
    Sets *s = w->sets;
    sets_restore(s);
    long done = select_now(s->n, s->set[READS], s->set[WRITES], s->set[URGENT]);
    return done != 0 || w->deadline <= gort_now() ? done : select_wait(s, w->deadline);
}

static int pselect_masked(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *ts,
                          const sigset_t *mask, int64_t deadline) {
    Sets s;
    Masked v = {.deadline = deadline, .sets = &s};
    int done = sets_keep(&s, n, r, w, e);
    if (done != 0) return (int)returned(done);
    Whole whole = {.sets = &s, .deadline = deadline};
    if (known.threads) done = (int)returned(thread_masked(mask, pselect_whole, &whole));
    else done = masked(&v, LIBC_CALL(pselect, n, r, w, e, ts, mask), 4);
    if (s.kept[0] != s.few) free(s.kept[0]);
    return done;
}

HOOK int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                 const struct timespec *restrict ts, const sigset_t *restrict mask) {
    if (!here() || n < 0 || (ts && !readable(ts, sizeof *ts)))
        return libc(pselect)(n, r, w, e, ts, mask);
    int64_t deadline;
    if (!timeout_deadline(ts, &deadline)) return (int)returned(-EINVAL);
    if (mask) return pselect_masked(n, r, w, e, ts, mask, deadline);
    return (int)returned(select_hooked(n, r, w, e, deadline));
}

/* ---- with a signal mask ---------------------------------------------------------------------- */

#define LOOK_AFTER (10 * GORT_MS)

/* In gort_blocking. A call that begins when the context is done asks once. */
static long masked_pieces(void *arg) {
    Masked *v = arg;
    for (;;) {
        int cause = cause_now(v->cause);
        int64_t left = time_left(v->deadline, gort_now());
        int64_t piece = cause ? 0 : left < LOOK_AFTER ? left : LOOK_AFTER;
        struct timespec ts = {.tv_nsec = piece};
        v->call.args[v->timeout] = v->in_ms ? (piece + GORT_MS - 1) / GORT_MS : (long)&ts;
        if (v->sets) sets_restore(v->sets);
        int r = (int)libc_call(&v->call);
        if (r != 0 || piece == left) return r;
        if (cause && v->sets) sets_restore(v->sets);
        if (cause) return returned(cause);
    }
}

static int masked(Masked *v, LibcCall call, int timeout) {
    v->call = call;
    v->timeout = timeout;
    v->cause = core->cause();
    return (int)stay_blocking(v->cause ? masked_pieces : libc_call, v);
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
    hint_settle(fd);
    int64_t deadline = after_ms(timeout);
    return (int)returned(staying_once(core->epoll(fd, events, max, deadline)));
}

static long epoll_whole(void *arg) {
    Whole *w = arg;
    long r = epoll_now(w->epoll, w->events, w->max);
    if (r != 0 || w->deadline <= gort_now()) return r;
    return core->epoll(w->epoll, w->events, w->max, w->deadline);
}

HOOK int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout,
                     const sigset_t *mask) {
    if (mask == NULL) return epoll_wait(fd, events, max, timeout);
    if (!here()) return libc(epoll_pwait)(fd, events, max, timeout, mask);
    if (known.threads) {
        Whole w = {.epoll = fd, .max = max, .events = events, .deadline = after_ms(timeout)};
        hint_settle(fd);
        return (int)returned(thread_masked(mask, epoll_whole, &w));
    }
    Masked v = {.deadline = after_ms(timeout), .in_ms = true};
    return masked(&v, LIBC_CALL(epoll_pwait, fd, events, max, timeout, mask, 0), 3);
}
