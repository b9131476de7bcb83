/* Gs that prefer a thread: those inside a hooked libc call. See preferred.c. */
#ifndef PREFERRED_H
#define PREFERRED_H

#include "runtime.h"

/* The current goroutine, outside of a section, before any other call into gort. True: it stays with
 * this thread until soft_end(); false: it has a home already (locked, an outer call). */
bool soft_begin(void);
void soft_end(void);
/* In a section on its home m: gp gets a hard one, and soft_end() finds nothing to end. */
INLINE void soft_harden(M *m, G *gp) {
    if (!(gp->flags & GF_SOFT)) return;
    gp->flags &= (uint8_t)~GF_SOFT;
    if (load_rlx(&gp->home) == m) store_rlx(&m->homed, m->homed - 1); /* not a body's */
}

/* On g0 with a P: gets gp, just picked, to its home. False: the home is gone, gp runs anywhere. */
bool soft_send(M *m, G *gp);
/* On g0 with a P: the next G that waits for this M; NULL: none. */
G *soft_take(M *m);
/* sched.lock: gp, or NULL, keeps a thread in the handler that others wait for. */
INLINE bool soft_hurries_locked(G *gp) {
    M *home = gp ? load_rlx(&gp->home) : NULL;
    return home != NULL && home->soft.head != NULL;
}
INLINE bool soft_waits(M *m) { return load_rlx(&m->soft.head) != NULL; }
/* sched.lock: m has no P and is about to sleep: what waits for it goes to the global queue; an M
 * that picks it there finds m in the pool. */
void soft_requeue_locked(M *m);
/* In a section: gp is the only one m runs from here on, and its guests run anywhere. */
void soft_lock(M *m, G *gp);
/* On g0: the thread ends, and with it what it was home to. */
void soft_close(M *m);
/* The monitor: gives up homes that were out of reach for too long. */
void soft_look(M *m, int64_t now);

#endif
