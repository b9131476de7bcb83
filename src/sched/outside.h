/*
 * Where a goroutine stands when a call of libc's is made: outside of the runtime, on its own stack?
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include "mem/stack.h"
#include "sched/m.h"

#include <signal.h>
#include <sys/syscall.h>

/* On a goroutine's thread: is this an alternate stack for signals, the runtime's or one that the
 * program has brought itself (sigaltstack)? The kernel knows of that; it is asked where sp is not
 * on the goroutine's own stack. */
INLINE bool on_signal_stack(const M *m, uintptr_t sp) {
    Stack *own = m->curg->stack;
    stack_t ss = {.ss_flags = 0};
    if (sp - (uintptr_t)m->altstack < ALT_STACK) return true;
    if (likely(own != NULL && sp - (uintptr_t)own->lo < stack_span(own))) return false;
    return arch_sys6(SYS_sigaltstack, 0, (long)&ss, 0, 0, 0, 0) == 0 && (ss.ss_flags & SS_ONSTACK);
}

/* Is this code of a goroutine, outside of the runtime, that may park? m is the thread's tls_runner,
 * not NULL; sp any address in the current frame.
 *
 * A goroutine is outside of the runtime while locks is 0 and its status is running: in a section,
 * on g0, pinned, in the preemption handler and inside a blocking call (announced or handed off)
 * libc's own function is the right one. On an alternate stack a signal handler of the program runs;
 * parking there would give the stack to the next signal. On any other (a coroutine's) it may. */
INLINE bool may_park(const M *m, uintptr_t sp) {
    const G *gp = m->curg;
    if (m->locks != 0 || gp == NULL || load_rlx(&gp->status) != G_RUNNING) return false;
    return !on_signal_stack(m, sp);
}

#endif
