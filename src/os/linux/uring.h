/* io_uring for regular files: uring.c. A part: completions come out of netpoll() as a list. */
#ifndef URING_H
#define URING_H

#include "runtime.h"

/* One operation, on the stack of the goroutine that waits for it. */
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

void uring_start(void); /* after kpoll_open; forbidden by the kernel: uring_put_locked says false */
void uring_stop(void);  /* waits until the kernel has let go of every buffer */

/* Puts op into the ring. True: the ring's lock is held until uring_commit(), which the goroutine
 * calls once it has left its stack. False: the caller takes a thread. */
bool uring_put_locked(UringOp *op);
uint32_t uring_commit(void); /* unlocks; the number of entries that nobody has handed over */
bool uring_due(uint32_t n);  /* n entries should not wait for netpoll() */
bool uring_hand_over(void);  /* true: some were refused, and wait for netpoll() */

/* Hands over what stands in the ring, and lists the refused Gs. Only if the M shares_numbers. */
void uring_submit(GList *list);
/* For any other thread: takes out what stands in the ring, and adds its Gs to the list, refused. */
void uring_withdraw(GList *list);
void uring_collect(GList *list); /* for netpoll.c: the Gs whose operations are done */
extern uint32_t uring_pending;  /* atomic: entries that nobody hands over, and 1 for refused ones */
extern uint32_t uring_standing; /* atomic: entries the kernel has not taken */
void uring_lost(void);          /* the program has closed the ring's number; any thread, any lock */
extern uint32_t uring_gone;     /* atomic: the number is lost */
/* for netpoll.c, after that: collects, and gives the deadline until which it may sleep */
int64_t uring_collect_lost(int64_t deadline, GList *list);
bool uring_on(void); /* there is a ring, so the kernel may run threads for it */

#endif
