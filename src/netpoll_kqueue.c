/*
 * The kernel side of the poller: kqueue, for the BSDs and macOS.
 *
 * Written against the same header as netpoll_epoll.c and compiled where <sys/event.h> exists. It
 * has not been run: there is no such system here.
 *
 * A descriptor is added for both filters with EV_CLEAR, which is edge-triggered; the sequence of
 * its entry travels in udata. Adding a known one updates it and reports anew what is ready; a
 * closed descriptor leaves the queue by itself; EV_EOF is the hang-up. A descriptor that supports
 * one direction only (the end of a pipe) makes the other filter's change fail, which
 * EV_RECEIPT reports for each change: one success is enough.
 *
 * Break. EVFILT_USER with EV_CLEAR would be taken away by whichever poll sees it first; here too a
 * non-blocking poll must not take it from a sleeper. So it is a plain user event without
 * EV_CLEAR, reset by the blocking poll that consumes it.
 */
#include "netpoll.h"

#if !defined(__linux__) && defined(__has_include)
#if __has_include(<sys/event.h>)

#include <errno.h>
#include <sys/event.h>
#include <sys/time.h>
#include <unistd.h>

#define BATCH 128
#define BREAK_IDENT 1

static int kq = -1;
static uint32_t broken; /* atomic: as in netpoll_epoll.c */
static Lock break_lock; /* a break may come while the runtime ends */

/* libc's wrappers set errno: kept for the caller. */
static int change(struct kevent *list, int n, struct kevent *out, int room) {
    static const struct timespec none = {0, 0};
    int saved = errno, r = kevent(kq, list, n, out, room, &none);
    if (r < 0) r = -errno;
    errno = saved;
    return r;
}

int kpoll_open(void) {
    struct kevent ev;
    int saved = errno;
    kq = kqueue();
    int r = kq < 0 ? -errno : 0;
    errno = saved;
    if (r < 0) return r;
    EV_SET(&ev, BREAK_IDENT, EVFILT_USER, EV_ADD, 0, 0, NULL);
    store_rlx(&broken, 0);
    r = change(&ev, 1, NULL, 0);
    if (r < 0) kpoll_close();
    return r < 0 ? r : 0;
}

void kpoll_close(void) {
    int saved = errno;
    lock(&break_lock, RANK_LEAF);
    if (kq >= 0) close(kq);
    kq = -1;
    unlock(&break_lock);
    errno = saved;
}

/* Whether it was known is not to be learned from kevent(2). */
int kpoll_add(int fd, uint32_t seq, bool known) {
    struct kevent ev[2], out[2];
    void *tag = (void *)(uintptr_t)seq;
    EV_SET(&ev[0], (uintptr_t)fd, EVFILT_READ, EV_ADD | EV_CLEAR | EV_RECEIPT, 0, 0, tag);
    EV_SET(&ev[1], (uintptr_t)fd, EVFILT_WRITE, EV_ADD | EV_CLEAR | EV_RECEIPT, 0, 0, tag);
    int n = change(ev, 2, out, 2), error = n < 0 ? n : -EPERM;
    for (int i = 0; i < n; i++) {
        if (out[i].data == 0) return 0;
        error = -(int)out[i].data;
    }
    return error == -EINVAL ? -EPERM : error;
}

void kpoll_del(int fd) {
    struct kevent ev[2], out[2];
    EV_SET(&ev[0], (uintptr_t)fd, EVFILT_READ, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    EV_SET(&ev[1], (uintptr_t)fd, EVFILT_WRITE, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    change(ev, 2, out, 2);
}

int kpoll_source(int fd, void (*source)(GList *list)) { return -ENOSYS; /* io_uring is Linux's */ }

static void trigger(int flags, int fflags) {
    struct kevent ev;
    EV_SET(&ev, BREAK_IDENT, EVFILT_USER, flags, fflags, 0, NULL);
    change(&ev, 1, NULL, 0);
}

/* That the queue was closed behind our back is not noticed here. */
bool kpoll_check(void) { return false; }
int kpoll_watch(int fd) { return 0; }
bool kpoll_ours(int fd) { return true; }

void kpoll_break(void) {
    uint32_t no = 0;
    if (load_rlx(&broken) != 0 || !cas_seq(&broken, &no, 1)) return;
    lock(&break_lock, RANK_LEAF);
    if (kq >= 0) trigger(0, NOTE_TRIGGER);
    unlock(&break_lock);
}

/* There is no "untrigger": taking the event out and putting it back is one. */
static void consume_break(void) {
    trigger(EV_DELETE, 0);
    trigger(EV_ADD, 0);
    xchg_seq(&broken, 0);
    fence_after_rmw(); /* pairs with the breaker's, as in netpoll_epoll.c */
}

static uint32_t what_of(const struct kevent *ev) {
    uint32_t what = ev->filter == EVFILT_READ ? EVENT_READ : EVENT_WRITE;
    if (ev->flags & (EV_EOF | EV_ERROR)) what |= EVENT_HUNG | (ev->filter == EVFILT_WRITE ? EVENT_READ : 0);
    return what;
}

void kpoll_wait(int64_t deadline, GList *list) {
    struct kevent ev[BATCH];
    struct timespec ts = {0, 0}, *until = &ts;
    if (deadline == GORT_FOREVER) {
        until = NULL;
    } else if (deadline != 0) {
        int64_t left = time_left(deadline, os_now());
        ts = (struct timespec){left / GORT_SEC, left % GORT_SEC};
    }
    int saved = errno, n = kevent(kq, NULL, 0, ev, BATCH, until);
    errno = saved;
    for (int i = 0; i < n; i++) {
        if (ev[i].filter == EVFILT_USER) {
            if (deadline != 0) consume_break();
        } else {
            netpoll_event((int)ev[i].ident, (uint32_t)(uintptr_t)ev[i].udata, what_of(&ev[i]), list);
        }
    }
}

#endif
#endif
