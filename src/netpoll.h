/*
 * The poller as the scheduler sees it (a part: it returns lists of Gs and never readies).
 */
#ifndef NETPOLL_H
#define NETPOLL_H

#include "runtime.h"

int netpoll_start(void);      /* at every start of a runtime: 0 or -errno */
void netpoll_stop(void);
/* Collects Gs whose descriptors are ready. deadline 0: does not block; GORT_FOREVER: until an
 * event or netpoll_break(). Each G in the list has been claimed and still counts in
 * sched.poll_waiters: the scheduler subtracts list->count once they are ready. */
void netpoll(int64_t deadline, GList *list);
void netpoll_break(void);     /* wakes the thread that blocks in netpoll; any thread, any time */

#endif
