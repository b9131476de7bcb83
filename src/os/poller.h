/* The kernel side of the poller, implemented by each system (os/linux/netpoll_epoll.c). netpoll.c
 * knows the waiters; this knows descriptors, and reports what happens to them. */
#ifndef POLLER_H
#define POLLER_H

#include "base/base.h" /* first: it asks libc for everything */

enum { EVENT_READ = 1, EVENT_WRITE = 2, EVENT_HUNG = 4, EVENT_SOURCE = 8 };
typedef struct KEvent {
    int fd;
    uint32_t seq;  /* as given to kpoll_add */
    uint32_t what; /* EVENT_... */
} KEvent;
enum { KPOLL_BATCH = 32 }; /* few: the kernel's data is still cached when an event is answered */

/* lost: called when the program had closed our descriptors and they were made anew: nothing is
 * registered any more. With a LEAF lock held, on any thread. */
int kpoll_open(void (*lost)(void));
void kpoll_close(void);
/* Reports every change of fd from now on, and its present state; known: fd should be registered. 0;
 * KPOLL_GONE: it should have been registered and was not; -EPERM: cannot be polled; -errno. */
enum { KPOLL_GONE = 1 };
int kpoll_add(int fd, uint32_t seq, bool known);
void kpoll_del(int fd);
/* True: our own descriptors were lost, and are made anew with nothing registered. No LEAF lock. */
bool kpoll_check(void);
int kpoll_watch(int fd); /* registers one of ours, without events, for kpoll_ours: 0, -errno */
bool kpoll_ours(int fd); /* one given to kpoll_watch or kpoll_source is unchanged */
/* At most KPOLL_BATCH events. Until the deadline (0: no wait) or a break, which a wait consumes. */
int kpoll_wait(int64_t deadline, KEvent *events);
void kpoll_break(void);
/* A descriptor of ours, reported as EVENT_SOURCE when it is readable (uring.c). */
int kpoll_source(int fd);

#endif
