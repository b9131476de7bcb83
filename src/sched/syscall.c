/*
 * Blocking calls.
 *
 * gort_enter_syscall only announces the call (status, a tick); the P stays with the thread. If the
 * call takes long and another thread could use the P, the monitor takes it by the protocol of
 * retake.c, and gort_exit_syscall finds out in its section's first load, like any call into gort.
 * So enter and exit are a handful of plain stores.
 *
 * gort_blocking hands the P off at once. The section stays open while fn runs: the monitor leaves a
 * thread in a section alone, and fn's calls into gort are nested sections of an M without a P,
 * which may do everything that does not block. An exception that leaves fn ends the call
 * (exception.c).
 */
#include "sched/syscall.h"
#include "sched/goexit.h"
#include "sched/globalq.h"
#include "sched/schedule.h"
#include "sched/retake.h"
#include "base/san.h"
#include "sched/sched.h"
#include "sched/sysmon.h"
#include "mem/stack.h"
#include "sched/trace.h"
#include "sched/wake.h"

typedef struct Return {
    G *gp;
    uint32_t *counter;
} Return;

static void queue_returned(M *m, void *arg) {
    Return r = *(Return *)arg; /* a copy: arg is on gp's stack, and gp may run right after this */
    store_rlx(&r.gp->status, G_RUNNABLE);
    global_put(r.gp);
    sysmon_uncount(r.counter, 1); /* gp may have run, and blocked, meanwhile */
    wake_after_submit(m);
}

M *acquire_p_or_queue(M *m, uint32_t *counter) {
    G *gp = m->curg;
    P *p = load_rlx(&sched.stop_waiting) ? NULL : idle_p_take(m->oldp);
    if (p) {
        m_acquire_p(m, p);
        store_rlx(&gp->status, G_RUNNING);
        sub_seq(counter, 1);
        trace_resume(m, gp);
        return m;
    }
    Return r = {gp, counter};
    gp->since = coarse_now();
    return switch_to_g0(m, gp, queue_returned, &r, NULL);
}

/* For dumps: where the caller of the function with this frame goes on. */
INLINE void mark_call(M *m, void *frame) { m_mark_call(m, arch_frame_record(frame)); }

M *block_begin(M *m) {
    mark_call(m, __builtin_frame_address(0));
    if (m->plain) {
        m->locks--;
        return m;
    }
    G *gp = m->curg;
    const char *why = unfinished(m);
    if (unlikely(why != NULL)) fatal("a blocking call %s", why);
    stack_check_sp(gp, (uintptr_t)__builtin_frame_address(0));
    gp->since = coarse_now();
    tsan_release(&sched); /* for stop (init.c): the runtime may end meanwhile */
    bump(&m->p->n.syscalls_blocking, 1);
    bump(&m->p->n.handoffs, 1);
    trace_syscall(m, gp);
    add_seq(&sched.in_syscall, 1);
    m->announced = gp->spare;
    gp->odd |= ODD_CALL;
    store_rlx(&gp->status, G_SYSCALL);
    P *p = m_release_p(m);
    m->oldp = p;
    trace_handoff(m, p);
    handoff_p(m, p);
    store_rlx(&m->rest, m->locks);
    return m;
}

/* Of an announced call: its goroutine runs again. */
INLINE void call_is_over(G *gp) {
    gp->odd &= ~(uint32_t)ODD_CALL;
    store_rlx(&gp->status, G_RUNNING);
}

M *block_end(M *m) {
    if (m->plain) {
        m->locks++;
        return m;
    }
    section_resumes(m);
    if (in_forked_child()) { /* made inside the call: no P, and nobody to wait for */
        call_is_over(m->curg);
        return m;
    }
    m->curg->odd &= ~(uint32_t)ODD_CALL;
    /* A Dekker pair with send_away (init.c), which sets EXIT and does not wait for a thread in a
     * call: it sees that this thread is out, and waits, or this thread sees EXIT. Otherwise gp
     * would be queued when the runtime is gone. */
    store_seq(&m->curg->status, G_RUNNING);
    if (load_seq(&m->attn) & ATTN_EXIT) return enter_slow(m);
    trace_sysexit(m, m->curg);
    return acquire_p_or_queue(m, &sched.in_syscall);
}

/* An exception leaves fn: the call is over, as if it had returned. */
static void blocking_unwound(ExitHook *h) {
    M *m = getm();
    int err = *m->errno_at;
    m = block_end(m);
    exit_hook_pop(m->curg, h);
    *m->errno_at = err;
    leave(m);
}

EXPORT long gort_blocking(long (*fn)(void *), void *arg) {
    if (in_forked_child()) return -ENOTCONN;
    ExitHook hook = {.fn = blocking_unwound};
    M *m = enter();
    exit_hook_push(m->curg, &hook);
    m = block_begin(m);
    long r = call_guarded(fn, arg); /* m stays the same: nothing inside may block */
    int err = *m->errno_at;
    m = block_end(m);
    exit_hook_pop(m->curg, &hook);
    /* m's, not errno: the thread may have changed, and compilers keep errno's address */
    *m->errno_at = err;
    leave(m);
    return r;
}

/* In the section of a goroutine that is not pinned; leaves that section. */
INLINE M *announce(M *m, void *frame) {
    G *gp = m->curg;
    if (unlikely(!retake_works)) { /* the monitor could not take the P: give it at once */
        m = block_begin(m);
        mark_call(m, frame);
        return m;
    }
    mark_call(m, frame);
    tsan_release(&sched);
    trace_syscall(m, gp);
    m->announced = gp->spare;
    gp->odd |= ODD_CALL;
    store_rlx(&m->syscalltick, m->syscalltick + 1);
    store_rlx(&gp->status, G_SYSCALL);
    fence_compiler();
    store_rel(&m->locks, m->locks - 1); /* not leave(): nothing is to happen in here */
    return m;
}

/* In the section again. */
INLINE M *announce_end(M *m) {
    G *gp = m->curg;
    if (unlikely(!retake_works)) return block_end(m);
    m->locks = 1; /* the section was left */
    fence_compiler();
    trace_sysexit(m, gp);
    call_is_over(gp); /* before attn is read: what is taken now shows as TAKEN */
    if (unlikely(load_rlx(&m->attn) != 0)) m = enter_slow(m);
    trace_resume(m, gp);
    return m;
}

M *syscall_begin(M *m) {
    return m->plain ? block_begin(m) : announce(m, __builtin_frame_address(0));
}
M *syscall_end(M *m) { return m->plain ? block_end(m) : announce_end(m); }

static NOINLINE void enter_otherwise(M *m) {
    if (!m->plain && !in_forked_child()) {
        const char *why = unfinished(m);
        fatal("gort_enter_syscall %s", why ? why : "in the middle of another call");
    }
    leave(m);
}

EXPORT void gort_enter_syscall(void) {
    M *m = enter();
    /* as in yield_straight */
    uint32_t otherwise = (m->locks ^ process.same) | (load_rlx(&m->curg->status) ^ G_RUNNING);
    if (unlikely((otherwise | m->plain) != 0)) return enter_otherwise(m);
    announce(m, __builtin_frame_address(0));
}

static NOINLINE void exit_otherwise(M *m) {
    if (in_forked_child()) return;
    int err = *m->errno_at;
    if (load_rlx(&m->curg->status) != G_SYSCALL)
        fatal("gort_exit_syscall without gort_enter_syscall");
    if (m->pins) fatal("gort_exit_syscall while pinned");
    if (m->locks != (retake_works ? 0 : 1))
        fatal("gort_exit_syscall inside the function of gort_blocking");
    m = announce_end(m);
    *m->errno_at = err;
    leave(m);
}

static NOINLINE void exit_asked(M *m) {
    int err = *m->errno_at;
    m = enter_slow(m);
    trace_resume(m, m->curg);
    *m->errno_at = err;
    leave(m);
}

/* announce_end, where nothing is to be noted and nobody has asked for anything: errno stays as it
 * is. */
EXPORT void gort_exit_syscall(void) {
    M *m = getm();
    if (m == NULL || m->plain) return;
    G *gp = m->curg;
    uint32_t otherwise = m->locks | (load_rlx(&gp->status) ^ G_SYSCALL) | load_rlx(&trace_on);
    if (unlikely(otherwise != 0 || !process.same)) return exit_otherwise(m);
    m->locks = 1;
    fence_compiler();
    PROBE1(syscall_exit, gp->id);
    call_is_over(gp);
    if (unlikely(load_rlx(&m->attn) != 0)) return exit_asked(m);
    leave(m);
}
