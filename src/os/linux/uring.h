/*
 * io_uring for regular files, see uring.c. A part: completions come out of netpoll() as a list.
 */
#ifndef URING_H
#define URING_H

#include "runtime.h"

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

void uring_start(
    void); /* with the poller; where the kernel forbids it, uring_put_locked says false */
void uring_stop(void); /* waits until the kernel has let go of every buffer */

/* Puts op into the ring. True: the ring's lock is held until uring_commit(), which its goroutine
 * calls once it has left its stack. False: not to be had now. */
bool uring_put_locked(UringOp *op);
uint32_t uring_commit(void); /* unlocks; how many entries nobody has handed over */
bool uring_due(uint32_t n);  /* so many should not wait for netpoll() */
bool uring_hand_over(void);  /* true: some were refused, for netpoll() to take */

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

#endif
