/*
 * The half of a switch that stands in the frame of the call that blocks.
 *
 * A blocking call is in two halves. The first, a function of sched.c (park_begin, yield_begin …),
 * marks the goroutine, notes what is to be done once its stack is left, picks who is next, and
 * gives the context to continue at. The second, here, is inline: the switch itself and what the
 * side that comes back has to do. So no function of ours stands between the switch and the public
 * call; arch.h tells why that matters.
 */
#ifndef SWITCH_H
#define SWITCH_H

#include "runtime.h"
#include "base/san.h"
#include "mem/split/split.h"
#include "mem/stack.h"

/* A function that waits for others as the tail of a public call, and begins by returns_apart():
 * arch.h */
#define RETURNS_APART NOINLINE ARCH_RETURNS_APART
INLINE void returns_apart(M *m) { m->left_at = __builtin_return_address(0); }

void finish_commit(M *m);

/* What the goroutine that ran before on this M left to do once its stack is left (sched.c). */
INLINE void finish_switch(M *m) {
    Lock *l = m->unlock;
    if (l) { /* never both */
        m->unlock = NULL;
        unlock(l);
    } else if (m->commit) {
        finish_commit(m);
    }
}

/* Tells the sanitizers and goes on at `sp`, the context of `to`; NULL: of g0. `from` NULL: from
 * g0. */
INLINE void switch_stacks(M *m, void **save, G *from, G *to, void *sp) {
    TSAN_TELL(__tsan_switch_to_fiber, to ? to->stack->san_fiber : m->san_fiber, 1L);
#ifdef GORT_ASAN
    void *fake = NULL;
    bool ends = from && load_rlx(&from->status) == G_DEAD;
    if (to)
        __sanitizer_start_switch_fiber(ends ? NULL : &fake, to->stack->lo, stack_span(to->stack));
    else
        __sanitizer_start_switch_fiber(ends ? NULL : &fake, m->stack_lo,
                                       (size_t)((char *)m->stack_hi - (char *)m->stack_lo));
#endif
    arch_switch(save, sp);
#ifdef GORT_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

/* gp, which ran on m, leaves for m->curg at sp; comes back when it runs again, perhaps
 * elsewhere. */
INLINE M *switch_simply(M *m, G *gp, void *sp) {
    switch_stacks(m, &gp->sp, gp, m->curg, sp);
    m = getm();
    guard_restore(gp);
    finish_switch(m);
    *m->errno_at = gp->err;
    return m;
}

/* In a catch block, or a destructor on the way to one: C++ keeps that for the thread, and it is the
 * goroutine's. So whoever leaves takes it along, and a thread between two goroutines has none. */
M *switch_from_catch(M *m, G *gp, void *sp); /* sched.c */
INLINE bool in_catch(M *m) {
    Handling *h = m->handling;
    return unlikely(h != NULL) && (h->caught != NULL || h->uncaught != 0);
}
INLINE M *switch_from(M *m, G *gp, void *sp) {
    return unlikely(in_catch(m)) ? switch_from_catch(m, gp, sp) : switch_simply(m, gp, sp);
}

#endif
