/* Where a goroutine stands when it calls libc: outside of the runtime, on its own stack? */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include "mem/stack.h"
#include "sched/m.h"

#include <signal.h>
#include <sys/syscall.h>

/* On a goroutine's thread: is sp on an alternate stack for signals, the runtime's or one that the
 * program has set (sigaltstack)? The kernel is asked only if sp is not on the goroutine's own. */
INLINE bool on_signal_stack(const M *m, uintptr_t sp) {
    Stack *own = m->curg->stack;
    stack_t ss = {.ss_flags = 0};
    if (sp - (uintptr_t)m->altstack < ALT_STACK) return true;
    if (likely(own != NULL && sp - (uintptr_t)own->lo < stack_span(own))) return false;
    return arch_sys6(SYS_sigaltstack, 0, (long)&ss, 0, 0, 0, 0) == 0 && (ss.ss_flags & SS_ONSTACK);
}

/* May the caller park: is it code of a goroutine, outside of the runtime? m: the thread's
 * tls_runner, not NULL; sp: any address in the current frame.
 *
 * A goroutine is outside of the runtime while locks is 0 and its status is running: not in a
 * section, on g0, pinned, in the preemption handler or in a blocking call (announced or handed
 * off). On an alternate stack a signal handler of the program runs, and parking would give the
 * stack to the next signal. On any other stack (a coroutine's) it may park. */
INLINE bool may_park(const M *m, uintptr_t sp) {
    const G *gp = m->curg;
    if (m->locks != 0 || gp == NULL || load_rlx(&gp->status) != G_RUNNING) return false;
    return !on_signal_stack(m, sp);
}

#endif
