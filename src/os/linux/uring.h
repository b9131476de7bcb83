/*
 * io_uring for regular files, see uring.c. A part: completions come out of netpoll() as a list.
 */
#ifndef URING_H
#define URING_H

#include "sched/sched.h"

/* One operation; lives on the stack of the goroutine that waits for it. */
typedef struct UringOp {
    G *gp;
    int opcode; /* IORING_OP_READ, ... */
    int fd;
    void *buf;
    uint32_t n;
    int64_t offset;
    long result;
    void (*put)(M *m, void *arg); /* called once the entry is in the ring and the stack is left */
    void *arg;
} UringOp;

void uring_start(void); /* with the poller; where the kernel forbids it, uring_run says false */
void uring_stop(void);  /* waits until the kernel has let go of every buffer */

/* True: op->result is the outcome, and *m the M to go on with; -EAGAIN: the kernel would not take
 * it. False: not to be had now. A goroutine in a section of depth 1; parks. */
bool uring_run(M **m, UringOp *op);

/* Hands over what stands in the ring; who was refused is added to the list. Any thread. */
void uring_submit(GList *list);
void uring_collect(GList *list); /* what is done; for netpoll.c */
/* atomic: entries put that nobody is handing over; or some were refused */
extern uint32_t uring_pending;
extern uint32_t uring_standing; /* atomic: entries the kernel has not taken */
/* its number is somebody else's, or nobody's; any thread, any lock */
void uring_lost(void);
extern uint32_t uring_gone; /* atomic: it is lost */
/* for netpoll.c; how long it may sleep */
int64_t uring_collect_lost(int64_t deadline, GList *list);
/* there is a ring: its operations may run on threads of the kernel */
bool uring_on(void);
bool netpoll_sleeping(void); /* netpoll.c: a thread sleeps in the poller */

#endif
