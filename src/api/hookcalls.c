/*
 * The core's side of the hook: one table of what libgort-hook.so may call, by the only exported
 * name that is not in gort.h. tls_runner and may_park(), the tests of a hooked call, are inline on
 * the hook's side: two calls between libraries cost more than what they test.
 */
#include "api/hookcalls.h"
#include "base/env.h"
#include "base/san.h"
#include "base/upstairs.h"
#include "sync/sema.h"
#include "io/close.h"
#include "sched/body.h"
#include "sched/describe.h"
#include "sched/ender.h"
#include "sched/goexit.h"
#include "io/fdcall.h"
#include "sched/schedule.h"
#include "sched/retake.h"
#include "sched/sim.h"
#include "sched/preferred.h"
#include "sched/sysmon.h"
#include "unwind/symbols.h"

static uint32_t hook_life(void) { return load_acq(&sched.running) ? load_rlx(&sched.epoch) : 0; }
static void hook_lock(Lock *l) { lock(l, RANK_PRIM); }

/* A signal handler may call sem_post and a futex's wake. It has interrupted its thread in a
 * section, whose locks it would wait for without end and whose P it must not touch, or outside, on
 * a stack that it must not leave. So: NULL in the middle of a section, and the monitor is asked to
 * wake the waiters (hook_owe); else a section without a switch, and without a P if that is gone.
 * A section held open by the program (pins, rest) is no middle; nor is a plain thread's sleep. */
static M *hook_enter_anywhere(void) {
    M *m = getm();
    if (m == NULL && (m = m_adopt_or_null()) == NULL) return NULL;
    if (m->locks != m->pins + load_rlx(&m->rest) || m->curg == NULL) return NULL;
    m->locks++;
    fence_compiler();
    for (uint32_t attn = load_rlx(&m->attn); attn & (ATTN_PENDING | ATTN_TAKEN | ATTN_EXIT);
         attn = load_rlx(&m->attn)) {
        if (attn & ATTN_EXIT) {
            store_rel(&m->locks, m->locks - 1);
            return NULL;
        }
        if (attn & ATTN_PENDING) { /* as enter_slow */
            cas_seq(&m->attn, &attn, attn & ~(uint32_t)ATTN_PENDING);
            continue;
        }
        m->p = NULL;
        break;
    }
    return m;
}

static bool hook_in_sharing_child(void) { return !in_forked_child() && in_any_child(); }

/* The name of the function at pc; NULL: it has none. */
static const char *function_at(const void *pc) { return symbol_of((uintptr_t)pc).name; }

static bool hook_yield(void) {
    if (unlikely(sim_on)) return sim_yield();
    M *m = enter();
    bool others = work_waits(m->p);
    leave(m);
    if (others) gort_yield();
    return others;
}

static void hook_leave_anywhere(M *m) {
    fence_compiler();
    store_rel(&m->locks, m->locks - 1); /* as leave */
}

static void (*hook_pay)(M *m); /* the hook's */
/* The waiters try again, and find that their life is over, or wait for the new file. */
static void number_pay(M *m, Desc *d) {
    GList woken = {0};
    lock(&d->lock, RANK_POLL);
    desc_reset(d);
    desc_wake_all(d, 0, &woken);
    unlock(&d->lock);
    wake_list(m, &woken);
}
/* The monitor does what signal handlers could not. */
static void hook_pay_all(M *m) {
    hook_pay(m);
    for (int fd = 0; fd < DESC_NOTES; fd++) {
        Desc *d = desc_at(fd);
        if (d == NULL) fd |= CHUNK - 1; /* on to the next chunk */
        else if (load_rlx(&desc_notes[fd].owed) && xchg_seq(&desc_notes[fd].owed, 0))
            number_pay(m, d);
    }
}
static void hook_owe(void) { sysmon_ask(hook_pay_all); }
static void hook_owe_number(int fd) {
    store_rlx(&desc_notes[fd].owed, 1); /* published by hook_owe */
    hook_owe();
}

static bool *tell_retakes; /* the hook's; NULL: no hook */
static void (*tell_sim)(bool simulated);

void hook_begin(void) {
    if (tell_retakes) store_rlx(tell_retakes, retake_works && settings.retake != 1 && !sim_on);
    if (tell_sim) tell_sim(sim_on);
}

static void hook_attach(bool *retakes, DescNote *notes, void (*pay)(M *m),
                        void (*tell)(bool simulated), const void *(*mutex_of)(G *gp, int *holder)) {
    tell_retakes = retakes;
    tell_sim = tell;
    upstairs.mutex_of = mutex_of;
    hook_pay = pay;
    hook_begin();
    store_rlx(&desc_notes, notes);
}

/* The hook has made it (m.h: own_thread counts its own). */
static void hook_thread_is_ours(void) {
    add_rlx(&sched.threads, 1);
    m_is_ours();
}

static void hook_signal_wait(int more) { add_seq(&sched.signal_channels, (uint32_t)more); }

static void (*values_forked)(void *);

static void hook_attach_values(void (*end)(void), void (*lost)(void *values),
                               void (*forked)(void *values)) {
    values_end = end;
    values_lost = lost;
    values_forked = forked;
}

void hook_forked(void) {
    M *m = getm();
    G *gp = m && !m->plain ? m->curg : NULL;
    if (gp == NULL || gp->stack == NULL || gp->stack->values == NULL) return;
    values_forked(gp->stack->values);
    gp->stack->values = NULL; /* a child of this child has them already */
}

/* Calls that wait there, for a file that dup2 replaced, get EBADF as from a close. */
static void hook_forget(int fd) {
    GList woken = {0};
    M *m = enter();
    Desc *d = desc_of(fd);
    if (d) {
        lock(&d->lock, RANK_POLL);
        desc_wake_all(d, -EBADF, &woken);
        unlock(&d->lock);
    }
    desc_born(fd);
    desc_note_unused(fd);
    wake_list(m, &woken);
    leave(m);
}

/* Any thread, also in a signal handler. CLOSE_NOW: on a goroutine that may park, is pinned or in
 * gort_blocking, or on a plain thread. */
static int hook_may_close(void) {
    M *m = getm();
    if (in_any_child()) return CLOSE_CHILD;
    if (m == NULL) return CLOSE_NOW;
    if (m->plain) return m->locks == 0 ? CLOSE_NOW : CLOSE_BEHIND;
    if (m->curg == NULL || on_signal_stack(m, (uintptr_t)__builtin_frame_address(0)))
        return CLOSE_BEHIND;
    uint32_t status = load_rlx(&m->curg->status);
    bool blocking = m->locks == 1 && m->p == NULL && status == G_SYSCALL;
    return blocking || (m->locks == m->pins && status == G_RUNNING) ? CLOSE_NOW : CLOSE_BEHIND;
}

/* ODD_USES, if a context is in use; signals end such waits (body.h). */
static uint32_t context_in_use(G *gp) {
    Ender *e = ender_of(gp);
    return e && e->ctx ? ODD_USES : 0;
}

static M *pthread_park_until(M *m, Lock *l, int reason, int64_t deadline, uint32_t ticket,
                             bool *timed_out) {
    int ended;
    G *gp = self(m);
    uint32_t uses = context_in_use(gp);
    gp->odd &= ~uses;
    m = park_until(m, l, reason, wait_limit(m, deadline), ticket, &ended);
    gp->odd |= uses;
    *timed_out = ended != 0;
    return m;
}

static int pthread_sleep_until(int64_t deadline) {
    G *gp = current_g();
    uint32_t uses = context_in_use(gp);
    gp->odd &= ~uses;
    int r; /* 0, and early: another thread took the signal that has ended it */
    do r = gort_sleep_until(deadline);
    while (r == 0 && deadline > os_now());
    gp->odd |= uses;
    return r;
}

EXPORT const HookCore *gort_hook_core(void) {
    static HookCore core = {
        .size = sizeof(HookCore),
        .size_m = sizeof(M),
        .size_g = sizeof(G),
        .life = hook_life,
        .enter = enter,
        .leave = leave,
        .enter_anywhere = hook_enter_anywhere,
        .leave_anywhere = hook_leave_anywhere,
        .owe = hook_owe,
        .lock = hook_lock,
        .unlock = unlock,
        .park_until = pthread_park_until,
        .sleep_until = pthread_sleep_until,
        .ready = ready,
        .yield = hook_yield,
        .signal_wait = hook_signal_wait,
        .sim_point = sim_hooked,
        .sim_elapsed = sim_elapsed,
        .guarded = arch_call_guarded,
        .jumped = exit_hook_jumped,
        .hooks_unwound = exit_hooks_unwound,
        .stay_begin = soft_begin,
        .stay_end = soft_end,
        .attach = hook_attach,
        .attach_values = hook_attach_values,
        .sigaction = preempt_sigaction,
        .keeps_signal = preempt_keeps,
        .use_sigaction = preempt_use_sigaction,
        .taken = &sched.taken,
        .looks = &sched.looks,
        .forget = hook_forget,
        .may_close = hook_may_close,
        .owe_number = hook_owe_number,
        .replace = desc_replace,
        .shut = desc_shut,
        .life_awaited = life_awaited,
        .move = hook_move,
        .accept = hook_accept,
        .connect = hook_connect,
        .read_other = hook_read_other,
        .read_terminal = hook_read_terminal,
        .in_background = hook_in_background,
        .cause = hook_cause,
        .read_memory = read_memory,
        .read_resume = hook_read_resume,
        .write_other = hook_write_other,
        .own = hook_own,
        .own_wait = hook_own_wait,
        .own_close = hook_own_close,
        .epoll = hook_epoll,
        .poll = poll_until,
        .env = env_get,
        .body_tid = body_tid,
        .body_anew = body_anew,
        .body_over = body_over,
        .body_attach = body_attach,
        .body_signals = body_signals,
        .body_interrupt = body_interrupt,
        .body_nudge = body_nudge,
        .body_alone = body_alone,
        .all_ms = &sched.all_ms,
        .barrier_everywhere = barrier_everywhere,
        .end_call = preempt_end_call,
        .context_sp = arch_context_sp,
        .context_result = arch_context_result,
        .raw_sigaction = body_sigaction,
        .m_is_ours = hook_thread_is_ours,
        .body_cpu = body_cpu,
        .rename = g_rename,
        .function_at = function_at,
        .lead = hook_lead,
        .descs = desc_table,
        .in_child = in_any_child,
        .in_sharing_child = hook_in_sharing_child,
        .vfork_begin = vfork_begin,
        .vfork_end = vfork_end,
    };
    core.tls_runner = (char *)&tls_runner - ARCH_THREAD_POINTER(); /* the same each time */
    core.in_valgrind = valgrind_runs();
    core.tls_vforks = (char *)&tls_vforks - ARCH_THREAD_POINTER();
    return &core;
}
