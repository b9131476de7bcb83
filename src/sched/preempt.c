/*
 * Preemption keeps the thread (docs/DESIGN.md has the laws).
 *
 * The monitor sets ATTN_PREEMPT in an M whose goroutine has run too long. Each call into gort sees
 * it (enter, leave): the goroutine goes to the tail of the global queue as if it yielded. Code that
 * makes no calls gets SIGURG: the handler, on the alternate stack, gives the P away, queues its
 * goroutine with this M as home, and waits until it is handed a P again.
 *
 * The handler does nothing in a section, on g0 or pinned (locks > 0): the end of it sees the bit. A
 * new slice clears the bit, so a stale signal finds none.
 *
 * The program may set a handler of its own for the number, and gets its signals: chain(). The hook
 * leaves on_signal() installed and notes the program's here. Without the hook preemption by signal
 * has ended then: the monitor looks after a few signals in vain, and says so.
 *
 * Rules of the handler: no malloc, no stdio; never yield or leave() from it, since a switch on the
 * alternate stack would let the next signal overwrite it; locks goes back to 0 by a plain store.
 */
#include "sched/preempt.h"
#include "sched/pick.h"
#include "sched/threadstate.h"
#include "sched/syscall.h"
#include "sched/globalq.h"
#include "sched/body.h"
#include "sched/bound.h"
#include "sched/inlibc.h"
#include "sched/schedule.h"
#include "sched/threadmaker.h"
#include "sched/nopreempt.h"
#include "base/san.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "mem/split/split.h"
#include "mem/stack.h"
#include "sched/capture.h"
#include "sched/trace.h"
#include "sched/wake.h"
#include "base/warn.h"
#include "base/fork.h"
#include "sched/stopworld.h"

#include <signal.h>
#include <sys/syscall.h>

#define UNANSWERED 4 /* signals without effect before the monitor asks whose the handler is */

static sigset_t thread_mask; /* the mask gort_main was called with */
static int installed;        /* atomic: the signal that on_signal is there for; 0: none */
/* The program's own handler for the signal, if it has one. */
static struct {
    Lock lock;
    struct sigaction act; /* lock */
    uintptr_t word;       /* atomic, for handlers: the address, and WITH_INFO */
} previous;
#define WITH_INFO ((uintptr_t)1 << 63) /* it takes three arguments */
/* Without the hook between. */
static int (*libc_sigaction)(int, const struct sigaction *, struct sigaction *) = sigaction;

/* ---- asked by flag --------------------------------------------------------------------------- */

/* On g0. The runtime of this M has ended, and its goroutine runs no further. The end buries the G
 * (abandon, init.c), unless this thread was in the kernel then: of the two, the second buries it. A
 * gp of a handler is still in the global queue, which goes as a whole. */
static void left(M *m, void *arg) {
    G *gp = arg;
    store_rlx(&gp->status, G_WAITING);
    if (xchg_seq(&gp->stack->settled, 1) == 0) return; /* pairs with abandon's */
    go_abandon(m, gp);
}

static NORETURN void leave_runtime(M *m) {
    /* pairs with stop (init.c), which does not wait for the end of a thread whose P was taken */
    tsan_release(&sched);
    if (load_rlx(&m->attn) & ATTN_TAKEN) m->p = NULL; /* the P may be the next runtime's by now */
    m->dying = true;
    m->locks = 1;
    m->pins = 0;
    leave_for_good(m, left, m->curg);
}

/* The P was retaken; it is the first that will be asked for. */
static void lose_p(M *m) {
    if (m->p) m->oldp = m->p;
    m->p = NULL;
}

/* The P was retaken, and the thread is back. False: the runtime has ended, and the thread remains
 * TAKEN. send_away (init.c) sets EXIT, and does not wait for a thread that is TAKEN then: this
 * exchange comes first, and send_away waits, or it sees EXIT. */
static bool no_longer_taken(M *m) {
    uint32_t attn = load_rlx(&m->attn);
    while (!(attn & ATTN_EXIT))
        if (cas_seq(&m->attn, &attn, attn & ~(uint32_t)ATTN_TAKEN)) {
            lose_p(m);
            return true;
        }
    return false;
}

/* The P was retaken. Returns the M that the goroutine goes on with. */
static M *come_back(M *m) {
    if (unlikely(!no_longer_taken(m))) leave_runtime(m);
    return acquire_p_or_queue(m, &sched.taken);
}

static M *give_way(M *m) {
    and_seq(&m->attn, ~(uint32_t)ATTN_PREEMPT);
    if (!load_rlx(&sched.stop_waiting) && !work_waits(m->p)) return m;
    bump(&m->p->n.preemptions, 1);
    trace_preempt(m, m->curg);
    lock(&sched.lock, RANK_SCHED);
    G *gp = m->curg;
    store_rlx(&gp->status, G_RUNNABLE);
    gp->since = coarse_now();
    slice_ended(m->p);
    global_spilled_first_locked();
    glist_push(&sched.global, gp);
    return switch_to_g0(m, gp, unlock_and_wake, NULL, NULL);
}

/* A child inherits a request with its memory (fork.c), and there is nobody to give way to: a forked
 * child ignores it, a child of vfork, which shares the memory, is stopped. */
static bool asks_a_child(M *m) {
    if (in_forked_child()) return true;
    if (load_rlx(&m->attn) != ATTN_SIM) vfork_stops(m);
    return false;
}

NOINLINE M *enter_slow(M *m) {
    if (unlikely(asks_a_child(m))) return m;
    for (;;) {
        uint32_t attn = load_rlx(&m->attn);
        if (unlikely(attn & ATTN_FORK)) {
            fork_gate_wait(m);
            continue;
        }
        if (attn == 0 || m->plain || m->curg == NULL) return m;
        if (unlikely((attn & ~(uint32_t)ATTN_CHILD) == ATTN_SIM))
            return load_rlx(&m->curg->status) == G_SYSCALL ? m : sim_point(m);
        bool announced = load_rlx(&m->curg->status) == G_SYSCALL;
        if (announced && (attn & (ATTN_EXIT | ATTN_TAKEN))) {
            lose_p(m); /* a section inside a blocking call: without a P */
            return m;
        }
        if (attn & ATTN_EXIT) leave_runtime(m);
        if (attn & ATTN_PENDING) { /* pairs with R5 of retake.c: the winner of this CAS has the P */
            cas_seq(&m->attn, &attn, attn & ~(uint32_t)ATTN_PENDING);
            continue;
        }
        if (attn & ATTN_TAKEN) {
            m = come_back(m);
            continue;
        }
        if (announced || !(attn & ATTN_PREEMPT)) return m;
        m = give_way(m);
    }
}

NOINLINE M *enter_asked(M *m) {
    if (m->locks == 1) return enter_slow(m);
    if (unlikely(load_rlx(&m->attn) & ATTN_CHILD)) vfork_stops(m);
    return m;
}

/* in_forked_child() may do what a fork's handlers do, which is outside of a section. */
NOINLINE M *enter_again(M *m) {
    m->locks--;
    return enter_first();
}
NOINLINE M *enter_first(void) { return in_forked_child() ? NULL : enter(); }

NOINLINE void leave_slow(M *m) {
    /* await_sections (init.c) waits for this */
    if (unlikely(m->plain) && m->locks == 0) and_seq(&m->attn, ~(uint32_t)ATTN_SECTION);
    if (m->locks != 0 || m->plain || m->curg == NULL) return;
    if (load_rlx(&m->curg->status) == G_SYSCALL) return;
    m->locks = 1;
    fence_compiler();
    m = enter_slow(m);
    fence_compiler();
    store_rel(&m->locks, 0); /* a request that comes now waits for the next call or signal */
    if (unlikely(load_rlx(&m->attn) & ATTN_SIGNAL) && body_attends) body_attends(m);
}

/* ---- asked by signal ------------------------------------------------------------------------- */

/* The runtime has ended. True: gp stands inside libc, and leaves when that returns. */
static bool leaves_behind_libc(M *m, G *gp, void *context) {
    int where = context ? inlibc_trap(gp, context) : OUTSIDE;
    if (where == OUTSIDE) return false;
    store_rlx(&m->in_handler, false);
    tsan_release(&sched); /* pairs with stop (init.c), as for threads that have gone */
    /* read by on_its_way (init.c): the end waits for this thread, unless it sleeps */
    store_seq(&m->finishing, (uint32_t)where);
    return true;
}

/* In the handler: waits for a P. */
static void wait_for_p(M *m, G *gp, void *context) {
    note_sleep(&m->note);
    if (load_rlx(&m->attn) & ATTN_EXIT) {
        if (leaves_behind_libc(m, gp, context)) return;
        leave_runtime(m); /* over to g0, never back */
    }
    P *p = m->nextp;
    m->nextp = NULL;
    m->nextg = NULL;
    store_rlx(&m->in_handler, false);
    store_rlx(&m->soft_held, m->soft_held + 1);
    m_acquire_p(m, p);
    slice_begins(p);
    p->turn = TURN_OWN;
    and_seq(&m->attn, ~(uint32_t)ATTN_PREEMPT);
    bool soft = gp->flags & GF_SOFT_HELD;
    if (soft) gp->flags ^= GF_SOFT_HELD | GF_SOFT;
    store_rlx(&gp->home, gp->lock_depth || (soft && !has_body(gp)) ? m : home_anywhere(gp));
    now_runs(m, p, gp);
    trace_start(m, gp);
    if (unlikely(load_rlx(&sched.stop_waiting)) && context && inlibc_trap(gp, context) != OUTSIDE)
        or_seq(&m->attn, ATTN_PREEMPT); /* lend (stopworld.c) wants its P back after libc */
}

/* sched.lock: queues gp in the global queue, with this thread as its home. */
static void queue_here_locked(M *m, G *gp) {
    trace_preempt(m, gp);
    if (gp->flags & GF_SOFT) gp->flags ^= GF_SOFT | GF_SOFT_HELD;
    store_rlx(&gp->home, m);
    gp->since = coarse_now();
    store_rel(&m->in_handler, true); /* pairs with start_of (describe.c): home, context */
    store_rlx(&gp->status, G_RUNNABLE);
    /* other Gs wait for this thread (preferred.c) */
    if (m->soft.head) glist_push_head(&sched.global, gp);
    else glist_push(&sched.global, gp);
}

/* One that stops now may not do so inside libc, with a lock: the world stops, or there is a fork
 * (forklibc.c).
 *
 * Both are set under sched.lock, and then their setter looks who stands in a handler there. A
 * thread that looked here before is queued under that lock: so the setter sees it, or it sees what
 * is set, and looks again where it stands. */
static bool libc_is_wanted(void) {
    return load_rlx(&sched.stop_waiting) || load_rlx(&sched.forking);
}

/* The P was retaken in the kernel, and now the thread computes: stops it until it has a P again.
 * outside: gp is known not to be inside libc. If it is not known, and libc is wanted now, nothing
 * is done, and the caller looks again; so it does when the runtime has ended. */
static void come_back_here(M *m, G *gp, void *context, bool outside) {
    bool spinning = false;
    P *p = NULL;
    lock(&sched.lock, RANK_SCHED);
    if ((!outside && libc_is_wanted()) || !no_longer_taken(m)) {
        unlock(&sched.lock);
        return;
    }
    if (!load_rlx(&sched.stop_waiting)) {
        p = idle_p_get_locked();
        /* or one on the maker's list: the maker may itself wait for a lock that gp holds */
        if (p == NULL) p = maker_take_pending_locked(&spinning);
    }
    if (p == NULL) queue_here_locked(m, gp);
    unlock(&sched.lock);
    if (p) {
        m_acquire_p(m, p);
        /* the P was to search: another searcher does */
        if (spinning && sub_seq(&sched.spinning, 1) == 0) wakep(m);
        sub_seq(&sched.taken, 1);
        trace_resume(m, gp);
        return;
    }
    sub_seq(&sched.taken, 1);
    wake_after_submit(m);
    wait_for_p(m, gp, context);
}

/* Gives the P to the next thread, and queues gp. False: no thread could take it now; or, with the
 * request set again, the caller is to look again, as above. */
static bool give_p_away(M *m, G *gp, bool outside) {
    P *p = m->p;
    lock(&sched.lock, RANK_SCHED);
    if (!outside && libc_is_wanted()) {
        unlock(&sched.lock);
        or_seq(&m->attn, ATTN_PREEMPT);
        return false;
    }
    if (load_rlx(&sched.stop_waiting)) {
        queue_here_locked(m, gp);
        world_p_stopped_locked(m_release_p(m));
        unlock(&sched.lock);
        return true;
    }
    M *next = sched.idle_ms;
    G *homed = NULL;
    if (next == NULL) {
        maker_want_spare_locked(); /* the next tick finds it in the pool */
        homed = home_take_queued_locked(p);
        if (homed == NULL) homed = home_take_any_locked();
    } else if (home_is_next_locked(p)) { /* else find.c decides whose turn it is */
        homed = home_take_waiting_locked();
    }
    if (homed == NULL && next == NULL) {
        unlock(&sched.lock);
        return false;
    }
    slice_ended(p);
    global_spilled_first_locked();
    queue_here_locked(m, gp);
    bump(&p->n.preemptions, 1);
    m_release_p(m);
    if (homed == NULL) {
        next = idle_m_get_locked();
        if (sched.idle_m_count < SPARES) maker_want_spare_locked();
    }
    unlock(&sched.lock);
    if (homed) m_wake_with(load_rlx(&homed->home), p, homed);
    else m_wake_with(next, p, NULL);
    return true;
}

static void preempt_here(M *m, void *context) {
    G *gp = m->curg;
    if (asks_a_child(m)) return;
    for (;;) {
        uint32_t attn = load_rlx(&m->attn);
        if (attn & ATTN_EXIT) {
            if (load_rlx(&gp->status) == G_SYSCALL || leaves_behind_libc(m, gp, context)) return;
            leave_runtime(m);
        }
        if (attn & ATTN_PENDING) {
            cas_seq(&m->attn, &attn, attn & ~(uint32_t)ATTN_PENDING);
            continue;
        }
        if (load_rlx(&gp->status) == G_SYSCALL) return;
        if (!(attn & (ATTN_TAKEN | ATTN_PREEMPT))) return;
        bool outside = context == NULL || libc_is_wanted();
        /* comes back here from the trap */
        if (outside && context && inlibc_trap(gp, context) != OUTSIDE) return;
        if (attn & ATTN_TAKEN) {
            come_back_here(m, gp, context, outside);
            continue;
        }
        and_seq(&m->attn, ~(uint32_t)ATTN_PREEMPT);
        if (!load_rlx(&sched.stop_waiting) && !work_waits(m->p)) return;
        if (give_p_away(m, gp, outside)) {
            wake_after_submit(m);
            wait_for_p(m, gp, context);
        } else if (load_rlx(&m->attn) & ATTN_PREEMPT) {
            continue;
        }
        return;
    }
}

/* With the context for readers that find this M in_handler (describe.c, inlibc.c, boehm.c). */
static void preempt_in_handler(M *m, void *context) {
    store_rlx(&m->context, context);
    preempt_here(m, context);
    store_rlx(&m->context, NULL);
}

void preempt_in_prologue(M *m) { preempt_here(m, NULL); }

void preempt_after_libc(M *m) {
    m->locks = 1;
    fence_compiler();
    if (load_rlx(&m->attn) != 0) preempt_here(m, NULL);
    fence_compiler();
    store_rel(&m->locks, 0);
}

static void chain(int signo, siginfo_t *info, void *context) {
    uintptr_t word = load_rlx(&previous.word), at = word & ~WITH_INFO;
    if (at == (uintptr_t)SIG_DFL || at == (uintptr_t)SIG_IGN) return;
    if (word & WITH_INFO) ((void (*)(int, siginfo_t *, void *))at)(signo, info, context);
    else ((void (*)(int))at)(signo);
}

/* The program's, which has come to the monitor's or the maker's thread, where its handlers never
 * run: to a thread of a whole program, else to the process's first, as by sigqueue(3). The codes of
 * kill(2) and the kernel's own are not to be had: a kernel thread may send them to itself only. */
static void pass_on(int signo, const siginfo_t *info) {
    siginfo_t with = *info;
    if (body_passed) {
        body_passed(info);
        return;
    }
    if (with.si_code >= 0) with.si_code = SI_QUEUE;
    os_sys(SYS_rt_tgsigqueueinfo, os_getpid(), os_getpid(), signo, (long)&with, 0, 0);
}

/* In a handler: mends what the signal has done to a system call. An optimistic call of the hook
 * ends and goes on as a goroutine's (hook/optimistic.c): restarted by the kernel, it would meet the
 * next owner of its number. Any other call is made again, unless the thread is to leave. */
void preempt_mend_call(M *m, void *context) {
    uintptr_t hot = m ? load_rlx(&m->hot_sp) : 0;
    if (unlikely(hot != 0 && hot == arch_context_sp(context))) arch_end_call(context);
    else if (m == NULL || !(load_rlx(&m->attn) & ATTN_EXIT)) arch_repair_eintr(context);
}

/* Of those that SA_RESTART concerns. */
static bool call_waits(long nr) {
    static const long calls[] = {
        SYS_read,    SYS_write,        SYS_readv,          SYS_writev, SYS_recvfrom, SYS_sendto,
        SYS_recvmsg, SYS_sendmsg,      SYS_recvmmsg,       SYS_accept, SYS_accept4,  SYS_connect,
        SYS_wait4,   SYS_waitid,       SYS_ioctl,          SYS_fcntl,  SYS_flock,    SYS_openat,
        SYS_futex,   SYS_mq_timedsend, SYS_mq_timedreceive};
    for (size_t i = 0; i < count_of(calls); i++)
        if (calls[i] == nr) return true;
    return false;
}

void preempt_end_call(void *context) {
    if (call_waits(arch_context_call(context))) arch_end_call(context);
}

/* The monitor's and the maker's threads have no other signals than ours. */
static bool is_asked(M *m) {
    return m && (load_rlx(&m->attn) != 0 || (m->plain && m->pseudo == NULL));
}

/* As os_tgkill sends it, and raise(3); but in a child the runtime sends none. */
static bool is_runtimes(const siginfo_t *info) {
    return info->si_code == SI_TKILL && info->si_pid == os_getpid() && !in_any_child();
}

/* Any thread, anywhere; a thread of the runtime on its alternate stack. Who sent a signal is lost
 * where the user has no room for one more that waits (ulimit -i): then it is ours where the
 * monitor has asked for something, else perhaps the program's, perhaps ours. */
static void on_signal(int signo, siginfo_t *info, void *context) {
    int err = *__errno_location();
    M *m = getm();
    bool ours = is_runtimes(info);
    bool lost = info->si_code == SI_USER && info->si_pid == 0;
    if (!ours && !(lost && is_asked(m))) {
        if (m && m->plain && m->pseudo == NULL) pass_on(signo, info);
        else chain(signo, info, context);
        *__errno_location() = err;
        if (!lost) return;
    }
    bool nudged = m && (load_rlx(&m->attn) & ATTN_SIGNAL);
    if (!nudged) preempt_mend_call(m, context);
    capture_here(m, context);
    bool outside = m && !m->plain && m->locks == 0 && m->unlocking == NULL && m->curg &&
                   !nopreempt_covers(arch_context_pc(context));
    if (outside) {
        m->locks = 1;
        fence_compiler();
        stack_check_sp(m->curg, arch_context_sp(context));
        if (load_rlx(&m->attn) != 0) preempt_in_handler(m, context);
        fence_compiler();
        store_rel(&m->locks, 0);
    }
    /* last: from here on signals may be blocked, or a handler of the program's runs, and this one
     * ends here. A call that one of them ends stays ended */
    *__errno_location() = err;
    bool comes = unlikely(body_nudged != NULL) && m && body_nudged(m, context, outside);
    if (nudged && !comes) preempt_mend_call(m, context);
    *__errno_location() = err;
}

static bool is_on_signal(const struct sigaction *act) {
    return (act->sa_flags & SA_SIGINFO) && act->sa_sigaction == on_signal;
}

static bool still_installed(void) {
    struct sigaction now;
    int signo = load_rlx(&installed);
    return signo && libc_sigaction(signo, NULL, &now) == 0 && is_on_signal(&now);
}

/* The thread runs, and yet the signals change nothing: has the program taken the number? */
static void doubt_handler(M *m, bool again) {
    if (!again) m->unanswered = 0;
    if (++m->unanswered < UNANSWERED) return;
    m->unanswered = 0;
    if (still_installed()) return;
    warn_once(WARN_HANDLER,
              "the program has changed the handler of signal %d, which was the runtime's: a "
              "goroutine that computes without calling gort is not preempted any more",
              settings.preempt_signal);
}

void preempt_m(M *m) {
    uint32_t before = or_seq(&m->attn, ATTN_PREEMPT);
    if (!(before & ATTN_PREEMPT)) add_rlx(&sched.other.preempt_requests, 1);
    if (!(before & ATTN_PREEMPT)) m->asked_cpu = -1;
    split_poison(m);
    if (settings.asyncpreemptoff || load_rlx(&m->locks) != 0) return;
    /* the next prologue may see the poison: a signal only if asked again */
    if (split.mode != SPLIT_OFF && !(before & ATTN_PREEMPT)) return;
    if (!thread_asked(m)) return; /* a sleeper's call would return EINTR */
    /* blocked by the program's handler, it would later undo that one's EINTR (arch_repair_eintr) */
    if (os_thread_blocks(m->tid, settings.preempt_signal)) return;
    doubt_handler(m, before & ATTN_PREEMPT);
    int r = os_tgkill(m->tid, settings.preempt_signal);
    if (unlikely(r < 0 && r != -ESRCH && r != -EAGAIN))
        warn_once(WARN_SIGNAL,
                  "the kernel refuses tgkill(2), %s: a goroutine that computes without "
                  "calling gort is not preempted",
                  errno_word(r));
}

/* The kernel refuses futex(2): the program has put a filter over all its threads. A new waiter
 * naps, but a thread that slept before would sleep for ever. A signal ends its call, and the
 * restarted one is refused. Once is enough. Any thread, with any lock, in a handler too. */
static void interrupt_sleepers(void) {
    static uint32_t told;
    if (xchg_seq(&told, 1)) return;
    warn_once(WARN_FUTEX,
              "the kernel refuses futex(2): threads that wait look twice in a millisecond whether "
              "they may go on, and signals may not become messages any more");
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        /* the tid of a thread that has ended is unused, or another thread of this process has it */
        if (load_rlx(&m->tid) > 0) os_tgkill(m->tid, settings.preempt_signal);
}

void preempt_unblock(void) {
    uint64_t mask = 1ULL << (settings.preempt_signal - 1);
    os_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0, 8, 0, 0);
}

void preempt_unmask(void) {
    sigset_t mask = thread_mask;
    sigdelset(&mask, settings.preempt_signal);
    sigdelset(&mask, SIGSEGV);
    long r = os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
    if (r == 0) memcpy(&getm()->sigmask, &mask, sizeof getm()->sigmask);
    /* a filter may refuse it since this thread was made */
    if (r < 0 && os_thread_blocks(os_gettid(), settings.preempt_signal))
        warn_once(WARN_SIGNAL,
                  "a thread cannot unblock signal %d: rt_sigprocmask(2) gives error %ld. A "
                  "goroutine that computes there without calling gort is not preempted",
                  settings.preempt_signal, -r);
}

void preempt_mask(void) {
    sigset_t all;
    sigfillset(&all);
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8, 0, 0);
}

static void note_previous(const struct sigaction *act) {
    previous.act = *act;
    uintptr_t at = (uintptr_t)act->sa_handler;
    store_rlx(&previous.word, at | (act->sa_flags & SA_SIGINFO ? WITH_INFO : 0));
}

/* With all signals blocked: a handler may call sigaction, too. So this is a section without its
 * beginning and its end, at which a handler must not give way. */
static void swap_previous(const struct sigaction *act, struct sigaction *old) {
    uint64_t all = ~(uint64_t)0, mask = 0;
    M *m = getm();
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, 8, 0, 0);
    if (m) m->locks++;
    lock(&previous.lock, RANK_LEAF);
    *old = previous.act;
    if (act) note_previous(act);
    unlock(&previous.lock);
    if (m) m->locks--;
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
}

int preempt_sigaction(int signo, const struct sigaction *act, struct sigaction *old) {
    struct sigaction wanted, was;
    bool ours = signo == load_rlx(&installed);
    if (ours && !in_any_child()) {
        if (act) wanted = *act;
        swap_previous(act ? &wanted : NULL, &was);
        if (old) *old = was;
        return 0;
    }
    int r = libc_sigaction(signo, act, old);
    if (r == 0 && ours && old && is_on_signal(old)) *old = previous.act;
    return r;
}

bool preempt_keeps(int signo) { return signo == load_rlx(&installed) && !in_any_child(); }

void preempt_use_sigaction(int (*libc)(int, const struct sigaction *, struct sigaction *)) {
    libc_sigaction = libc;
}

int preempt_install(void) {
    sigprocmask(SIG_SETMASK, NULL, &thread_mask);
    previous.lock = (Lock){0}; /* the parent's, if this is a child */
    /* it stayed for threads that were left behind, unless the program has set its own since */
    if (installed == settings.preempt_signal && still_installed()) return 0;
    struct sigaction was, sa = {.sa_flags = SA_SIGINFO | HANDLER_STACK | SA_RESTART};
    sa.sa_sigaction = on_signal;
    sigemptyset(&sa.sa_mask);
    /* before: the signal may come at once */
    if (libc_sigaction(settings.preempt_signal, NULL, &was) < 0) return -errno;
    note_previous(&was);
    if (libc_sigaction(settings.preempt_signal, &sa, NULL) < 0) return -errno;
    store_rlx(&installed, settings.preempt_signal);
    os_wake_refused = interrupt_sleepers;
    return 0;
}

void preempt_uninstall(bool awaited) {
    if (!installed || awaited) return;
    os_wake_refused = NULL;
    if (still_installed()) libc_sigaction(installed, &previous.act, NULL);
    store_rlx(&installed, 0);
}
