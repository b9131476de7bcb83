/*
 * The kernel side of the poller: what a system has to offer (os/linux/netpoll_epoll.c). netpoll.c
 * knows who waits; this knows descriptors, and reports what has happened to them.
 */
#ifndef POLLER_H
#define POLLER_H

#include "base/base.h" /* first: it asks libc for everything */

enum { EVENT_READ = 1, EVENT_WRITE = 2, EVENT_HUNG = 4, EVENT_SOURCE = 8 };
typedef struct KEvent {
    int fd;
    uint32_t seq;  /* as given to kpoll_add */
    uint32_t what; /* EVENT_... */
} KEvent;
/* few enough that what the kernel touched is in the cache still when it is read and answered */
enum { KPOLL_BATCH = 32 };

/* lost: the program has closed our descriptors, and they were made anew; nothing is registered any
 * more. Called with a LEAF lock held, on any thread. */
int kpoll_open(void (*lost)(void));
void kpoll_close(void);
/* Reports every change of fd from now on, and what is the case already; known: it should be known.
 * 0; KPOLL_GONE: it should have been known, and is now; -EPERM: cannot be polled; -errno. */
enum { KPOLL_GONE = 1 };
int kpoll_add(int fd, uint32_t seq, bool known);
void kpoll_del(int fd);
/* Our own descriptors are still ours; else they are made anew, and true: nothing is registered any
 * more. Any thread, any lock but LEAF. */
bool kpoll_check(void);
/* a descriptor of ours, which reports nothing, so that kpoll_ours can tell: 0, -errno */
int kpoll_watch(int fd);
bool kpoll_ours(int fd); /* one given to kpoll_watch or kpoll_source is still what it was */
/* What has happened, at most KPOLL_BATCH events; waits until the deadline, 0: not at all, or until
 * kpoll_break(). Only a wait consumes a break. */
int kpoll_wait(int64_t deadline, KEvent *events);
void kpoll_break(void);
/* A descriptor of ours that is reported as EVENT_SOURCE when it is readable (uring.c). */
int kpoll_source(int fd);

#endif
