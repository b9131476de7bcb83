/*
 * A call on a descriptor, as the rooms that make one see it: iotry.c (one attempt that cannot
 * block), iowait.c (waits and tries again), io.c (the POSIX mirrors), file.c (what cannot be
 * polled). It lives on the caller's stack, and a parked reader is little more than this.
 */
#ifndef IO_H
#define IO_H

#include "netpoll.h"
#include "san.h"
#include "sched.h"

typedef struct Call Call;

/* One attempt: a count, or -errno; -EAGAIN: would block. In a section, the entry's count of calls
 * held; both may be given back and taken again in between (c->m changes then). */
typedef long attempt_fn(Call *c);

struct Call {
    attempt_fn *attempt;
    int fd;
    uint8_t dir;
    bool plain;      /* a read that a drained socket may skip (iotry.c) */
    bool pace;       /* no edge will tell: try again by the clock */
    bool retried;    /* it has waited: to the front of the queue */
    uint8_t vain;    /* attempts so far that had to wait, up to 255 */
    bool begun;      /* seq stands: a call of several runs belongs to the descriptor it began with */
    /* Arguments, as the attempt wants them. */
    int flags;
    socklen_t alen;
    void *buf;
    size_t n;
    struct sockaddr *sa;
    socklen_t *salen;
    int64_t offset;  /* files: -1 for the descriptor's own position */
    /* iowait.c's: */
    M *m;
    Desc *d;
    uint32_t seq;    /* of the entry, when the call began */
    uint32_t edges;  /* of its direction, before the attempt */
    int64_t pause;   /* paced: how long the next pause is */
};

/* Makes the attempt until it gives something else than -EAGAIN, waiting in between. Begins and
 * ends the section. */
long call_run(Call *c, int64_t deadline);
/* One attempt. */
long call_once(Call *c);

/* The count of calls inside the kernel: -EBADF where the descriptor was closed since the call
 * began. */
int call_ref(Call *c);
void call_unref(Call *c);
void call_reref(Call *c); /* unconditionally */
bool call_closed(Call *c); /* since the call began */
void desc_unref(M *m, Desc *d);

/* For TSan: who reads has seen what was written before. Which ends belong together is the kernel's
 * knowledge, so all of them are one. */
extern char io_order;

/* Readies what the poller or a close has claimed. In a section. */
void wake_list(M *m, GList *list);

#define sys6(nr, a, b, c, d, e, f)                                                                 \
    os_sys((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* iotry.c */
attempt_fn try_read, try_write, try_readv, try_writev, try_recv, try_send, try_recvmsg, try_sendmsg,
    try_peek_all, try_accept, try_connect;
bool call_drained(Call *c); /* nothing to read: known without asking */

/* file.c: c->buf, c->n, c->offset; an iovec where c->flags says so. Never -EAGAIN. */
enum { FILE_READ, FILE_WRITE, FILE_FSYNC };
enum { FILE_VECTOR = 1 };
long file_run(Call *c, int op);

#endif
