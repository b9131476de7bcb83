/*
 * Behind the steps of forkgate.c libc's fork takes locks of its own: all of malloc's.
 *
 * A goroutine that was preempted inside malloc needs a P to give its lock back. The forker would
 * keep its P meanwhile, and others stand still with theirs, in sections that wait for the heap. So
 * first of all
 *
 *   1  sched.forking goes up: from here to the fork's end nobody is preempted inside libc
 *      (libc_is_wanted in preempt.c says why none slips through);
 *   2  those that were preempted there have their turn, and are waited for. A forker with a P is
 *      without it meanwhile, as in a blocking call, and stays on its thread: libc's fork is under
 *      way. How long they wait is the scheduler's choice, as natively the kernel's.
 *
 * A forker that is pinned, or in a handler on another stack, cannot wait, and may hang: gort(7). So
 * may one in a statically linked program, where nobody knows what is libc (inlibc.c).
 */
#include "sched/forklibc.h"
#include "sched/inlibc.h"
#include "sched/sched.h"

#define PATIENCE GORT_SEC /* for one in a function that takes no lock */

static __thread bool counted __attribute__((tls_model("initial-exec"))); /* in sched.forking */

static bool someone_stands_inside(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (load_acq(&m->alive) && inlibc_interrupted(m)) return true;
    return false;
}

static void await_libc(void) {
    int64_t until = time_after(os_now(), PATIENCE);
    while (someone_stands_inside() && os_now() < until) os_nap(50 * GORT_US);
}

static void await_libc_without_p(void) {
    gort_lock_thread();
    M *m = block_begin(enter());
    await_libc();
    leave(block_end(m));
    gort_unlock_thread();
}

static bool on_its_stack(const G *gp) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return gp->stack && here - (uintptr_t)gp->stack->lo <= stack_span(gp->stack);
}

void fork_wants_libc(M *self) {
    if (!runtime_running()) return;
    M *m = steady_begin();
    lock(&sched.lock, RANK_SCHED);
    add_seq(&sched.forking, 1);
    unlock(&sched.lock);
    steady_end(m);
    counted = true;
    if (!someone_stands_inside()) return;
    bool runs = self && !self->plain && load_rlx(&self->curg->status) == G_RUNNING;
    if (!runs) await_libc();
    else if (unfinished(self) == NULL && on_its_stack(self->curg)) await_libc_without_p();
}

void fork_had_libc(void) {
    if (counted) sub_seq(&sched.forking, 1);
    counted = false;
}
