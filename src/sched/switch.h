/*
 * The half of a switch that stands in the frame of the call that blocks.
 *
 * A blocking call has two halves. The first, a function of sched.c (park_begin, yield_begin …),
 * marks the goroutine, notes what is to be done once its stack is left, picks the next one, and
 * returns the context to continue at. The second, here, is inline: the switch itself and what the
 * side that comes back has to do. So no function of the library stands between the switch and the
 * public call; arch.h tells why that matters.
 */
#ifndef SWITCH_H
#define SWITCH_H

#include "runtime.h"
#include "base/san.h"
#include "mem/split/split.h"
#include "mem/stack.h"

/* For a function that blocks as the tail of a public call; it begins by returns_apart() (arch.h) */
#define RETURNS_APART NOINLINE ARCH_RETURNS_APART
INLINE void returns_apart(M *m) { m->left_at = __builtin_return_address(0); }

void finish_commit(M *m);

/* Does what the goroutine that ran before on this M left to be done off its stack (sched.c). */
INLINE void finish_switch(M *m) {
    Lock *l = m->unlock;
    if (l) { /* never both */
        m->unlock = NULL;
        unlock(l);
    } else if (m->commit) {
        finish_commit(m);
    }
}

/* Tells the sanitizers and goes on at sp, the context of `to`. `from` or `to` NULL: g0. */
void san_switch(M *m, G *from, G *to); /* sched.c */
INLINE void switch_stacks(M *m, void **save, G *from, G *to, void *sp) {
    SAN_TELL(san_switch, m, from, to);
    arch_switch(save, sp);
}

/* gp, which ran on m, leaves for m->curg at sp. Returns when gp runs again: the M it runs on. */
INLINE M *switch_simply(M *m, G *gp, void *sp) {
    switch_stacks(m, &gp->sp, gp, m->curg, sp);
    m = getm();
    guard_restore(gp);
    finish_switch(m);
    *m->errno_at = gp->err;
    return m;
}

/* The goroutine is in a catch block, or a destructor on the way to one. C++ keeps that state for
 * the thread. A goroutine that leaves takes it along; a thread between two has none. */
M *switch_from_catch(M *m, G *gp, void *sp); /* sched.c */
INLINE bool in_catch(M *m) {
    Handling *h = m->handling;
    return unlikely(h != NULL) && (h->caught != NULL || h->uncaught != 0);
}
INLINE M *switch_from(M *m, G *gp, void *sp) {
    return unlikely(in_catch(m)) ? switch_from_catch(m, gp, sp) : switch_simply(m, gp, sp);
}

#endif
