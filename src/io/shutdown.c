/*
 * gort_shutdown: shutdown(2), and the waiters of that side try again.
 *
 * The kernel tells most of them itself. It says nothing to a writer of a unix socket whose peer's
 * queue is full, nor to a call that waits by the clock, nor to a thread that waits for either; and
 * on one that connects or listens it reports late. So every waiter of the side is woken, whatever
 * the kernel answered: an unconnected socket gives ENOTCONN and is shut all the same. A call that
 * had its answer before and is not linked yet finds another count of edges (netpoll.c, step 3).
 */
#include "io/fdcall.h"

static long try_shutdown(Call *c) {
    GList woken = {0};
    long r = sys6(SYS_shutdown, c->fd, c->flags, 0, 0, 0, 0);
    lock(&c->d->lock, RANK_POLL);
    if (c->flags != SHUT_WR) desc_wake_side(c->d, DIR_READ, &woken);
    if (c->flags != SHUT_RD) desc_wake_side(c->d, DIR_WRITE, &woken);
    unlock(&c->d->lock);
    wake_list(c->m, &woken);
    return r;
}

EXPORT int gort_shutdown(int fd, int how) {
    Call c = {.attempt = try_shutdown, .fd = fd, .dir = DIR_WRITE, .flags = how};
    return (int)call_nowait(&c);
}
