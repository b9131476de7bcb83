/*
 * Signals come to threads that are goroutines.
 *
 * The kernel knows kernel threads. It gives a signal for the process to one that lets it through:
 * one that wears a thread (sigmask.c), which is then a thread that takes the signal, one that wears
 * nobody, or the catcher (sigwait.c). A signal for one thread (pthread_kill) never goes through the
 * kernel to another kernel thread: it is queued here, and the thread sends it to itself when it can
 * take it, by the kernel, so that the kernel does what a signal does: handler, mask,
 * SA_NODEFER, default action, registers.
 *
 *   S1  run_handler (handlers.c) is in front of every handler, and asks signal_comes. A kernel
 *       thread that wears a thread outside of the runtime, and of a call that waits (`calls`), runs
 *       the handler: on the thread's own stack, where the kernel would have put it, or on its own
 *       alternate stack. There it may park, and go on with another kernel thread: so its mask is
 *       noted (signal_runs), and at the end the frame gets the alternate stack of the kernel thread
 *       that returns by it.
 *       One for the process that main takes is main's, as in the kernel (is_mains); what a thread
 *       has sent itself is marked.
 *   S2  Inside, the signal is queued for the thread. Else it goes to any that takes it, main first
 *       (signal_route), or if none does into sigs.process, where whoever unblocks it looks.
 *   S3  Who queues a signal for t sets t's `cause`, which ends t's waits with -EINTR (ender.h), and
 *       its `attention`, and wakes it (thread_wake). A wait that is parked is ended. A kernel
 *       thread that wears t is nudged by the preemption signal (body_nudge), and its handler looks
 *       (signals_nudged). One that is about to wear it finds `attention` (body_wear).
 *   S4  t delivers one at a time, lowest number first, only outside, and only what it lets through
 *       at that moment. All signals are blocked from the look on, so none is left behind in a
 *       kernel thread. It delivers at the end of a call that waits (thread_stay_over), when a
 *       section ends (ATTN_SIGNAL: attends), when it unblocks (mask_set), in the nudge's handler,
 *       and when a handler returns.
 *
 * A call that waits is between thread_stay and its end: there a handler that jumps out would leave
 * an entry in some queue. It ends with -EINTR, its handlers run, and then it is made again, if they
 * all have SA_RESTART, or is EINTR.
 *
 * sigs.lock is taken with all signals blocked, also in handlers that have interrupted the runtime:
 * its holder takes no lock of the runtime's. Such a handler cannot end a park: the monitor does
 * (`owed`). A thread that is about to be woken does not end meanwhile (`wakers`).
 *
 * Orders: what a signal brings is under sigs.lock. `attention` and BodySignals.worn are a Dekker
 * pair (body_wear), `cause` and Ender.wait another (ender.h).
 */
#include "threads/signals.h"

#include <signal.h>
#include <ucontext.h>

#define POOL 16384
static struct {
    Signal at[POOL];
    uint32_t used; /* sigs.lock, with what follows */
    Signal *free;
} pool;

/* ---- queues (sigs.lock) ---------------------------------------------------------------------- */

static Signal *signal_alloc(void) {
    Signal *s = pool.free;
    if (s) pool.free = s->next;
    else if (pool.used < POOL) s = &pool.at[pool.used++];
    return s;
}
static void signal_free(Signal *s) {
    s->next = pool.free;
    pool.free = s;
}

#define FIRST_QUEUED 32 /* from here on each of a number is kept */

bool signal_add_locked(SignalQueue *q, const siginfo_t *info, bool shared) {
    int signo = info->si_signo;
    if (timer_overruns_locked(q, info)) return true;
    if (signo < FIRST_QUEUED && (q->set & SIGBIT(signo))) return true;
    Signal *s = signal_alloc();
    if (s) {
        *s = (Signal){.info = *info, .shared = shared};
        *(q->last ? &q->last->next : &q->first) = s;
        q->last = s;
    } else if (signo >= FIRST_QUEUED) {
        return false;
    }
    q->set |= SIGBIT(signo); /* without an entry: who sent it is lost */
    return true;
}

/* One that was taken last is the first again. */
static void signal_put_back_locked(SignalQueue *q, const siginfo_t *info) {
    Signal *s = signal_alloc();
    q->set |= SIGBIT(info->si_signo);
    if (s == NULL) return;
    *s = (Signal){.info = *info, .next = q->first};
    q->first = s;
    if (q->last == NULL) q->last = s;
}

/* s stands behind `before`; NULL: first. */
static void signal_unlink(SignalQueue *q, Signal *before, Signal *s) {
    *(before ? &before->next : &q->first) = s->next;
    if (q->last == s) q->last = before;
}

int signal_take_locked(SignalQueue *q, uint64_t set, siginfo_t *info) {
    if ((q->set & set) == 0) return 0;
    int signo = LOWEST(q->set & set);
    Signal *before = NULL, *s = q->first;
    for (; s && s->info.si_signo != signo; s = s->next) before = s;
    q->set &= ~SIGBIT(signo);
    if (s == NULL) {
        *info = (siginfo_t){.si_signo = signo, .si_code = SI_USER};
        return signo;
    }
    *info = s->info;
    signal_unlink(q, before, s);
    signal_free(s);
    for (s = q->first; s; s = s->next) q->set |= SIGBIT(s->info.si_signo);
    return signo;
}

bool cause_locked(Thread *t) {
    ThreadSignals *s = &t->sig;
    uint64_t there = s->queue.set | sigs.process.set;
    bool comes = (there & ~s->mask) != 0, due = cancel_due(t);
    bool ends =
        comes || (there & s->waits) || (due && (load_rlx(&s->point) || load_rlx(&s->async)));
    store_seq(&s->cause, ends ? -EINTR : 0);
    store_seq(&s->body->attention, comes || due);
    return comes || due;
}

static bool is_ignored(int signo) {
    struct sigaction act;
    if (sigaction(signo, NULL, &act) != 0) return false;
    if (act.sa_handler == SIG_DFL)
        return signo == SIGCHLD || signo == SIGURG || signo == SIGWINCH || signo == SIGCONT;
    return act.sa_handler == SIG_IGN;
}

/* What t is to take now, of the set; 0: nothing. */
static int next_locked(Thread *t, uint64_t set, siginfo_t *info) {
    int signo;
    set &= ~t->sig.mask;
    do {
        signo = signal_take_locked(&t->sig.queue, set, info);
        if (signo == 0) signo = signal_take_locked(&sigs.process, set, info);
    } while (signo && is_ignored(signo));
    return signo;
}

/* ---- to a thread ----------------------------------------------------------------------------- */

/* The monitor wakes it. */
static void owe_wake(Thread *t) {
    add_seq(&t->sig.wakers, 1);
    if (xchg_seq(&t->sig.owed, 1)) sub_seq(&t->sig.wakers, 1);
    core->owe();
}

static void wake_parked(Thread *t, M *m) {
    if (m) {
        core->body_interrupt(m, t->gp);
        return;
    }
    m = core->enter_anywhere();
    if (m == NULL) {
        owe_wake(t);
        return;
    }
    core->body_interrupt(m, t->gp);
    core->leave_anywhere(m);
}

void thread_wake(Thread *t, M *m) {
    wake_parked(t, m);
    M *worn = load_seq(&t->sig.body->worn); /* a Dekker pair with wear_signals: `attention` */
    if (worn) core->body_nudge(worn);
}

void signals_pay(M *m) {
    for (Thread *t = NULL;;) {
        uint64_t old = sigs_lock();
        for (t = sigs.first; t && !load_rlx(&t->sig.owed); t = t->sig.next) {}
        if (t) store_rlx(&t->sig.owed, 0);
        sigs_unlock(old);
        if (t == NULL) return;
        thread_wake(t, m);
        sub_seq(&t->sig.wakers, 1);
    }
}

/* ---- to the process -------------------------------------------------------------------------- */

static bool takes(const Thread *t, int signo) {
    return ((~t->sig.mask | t->sig.waits) & SIGBIT(signo)) != 0;
}

static Thread *taker_locked(int signo) {
    if (sigs.open[signo] == 0 && sigs.awaited[signo] == 0) return NULL;
    Thread *t = sigs.first;
    while (t && !takes(t, signo)) t = t->sig.next;
    return t;
}

/* To the thread that it is for. NULL: it is nobody's now. */
static Thread *signal_given_locked(const siginfo_t *info) {
    Thread *t;
    if (unlikely(timer_thread_locked(info, &t))) {
        if (t) signal_add_locked(&t->sig.queue, info, false);
        return t;
    }
    t = taker_locked(info->si_signo);
    signal_add_locked(t ? &t->sig.queue : &sigs.process, info, true);
    return t;
}

void signal_route(const siginfo_t *info) {
    uint64_t old = sigs_lock();
    Thread *t = signal_given_locked(info);
    if (t) {
        add_seq(&t->sig.wakers, 1);
        cause_locked(t);
    }
    sigs_unlock(old);
    if (t == NULL) return;
    thread_wake(t, NULL);
    sub_seq(&t->sig.wakers, 1);
}

/* The first of the process's that t has and does not take. */
static bool unwanted_locked(Thread *t, siginfo_t *info) {
    Signal *before = NULL, *s = t->sig.queue.first;
    for (; s && (!s->shared || takes(t, s->info.si_signo)); s = s->next) before = s;
    if (s == NULL) return false;
    *info = s->info;
    signal_unlink(&t->sig.queue, before, s);
    signal_free(s);
    t->sig.queue.set = 0;
    for (s = t->sig.queue.first; s; s = s->next) t->sig.queue.set |= SIGBIT(s->info.si_signo);
    return true;
}

void signals_give_back(Thread *t) {
    siginfo_t info;
    for (bool any = true; any;) {
        if (load_rlx(&t->sig.queue.first) == NULL) return;
        uint64_t old = sigs_lock();
        any = unwanted_locked(t, &info);
        sigs_unlock(old);
        if (any) signal_route(&info);
    }
}

/* ---- the thread itself ----------------------------------------------------------------------- */

#define SENT_BY_ITSELF 0x60a70000 /* in si_errno, which the kernel hands on */
static bool queue_self(Thread *t, const siginfo_t *info) {
    siginfo_t marked = *info;
    marked.si_errno = SENT_BY_ITSELF;
    t->sig.sent |= SIGBIT(info->si_signo);
    return sys(SYS_rt_tgsigqueueinfo, sys(SYS_getpid, 0, 0, 0, 0, 0, 0),
               sys(SYS_gettid, 0, 0, 0, 0, 0, 0), info->si_signo, &marked, 0, 0) == 0;
}

bool signal_unmark(siginfo_t *info) {
    bool own = info->si_errno == SENT_BY_ITSELF;
    if (own) info->si_errno = 0;
    return own;
}

/* Where the user has no room for one more that waits (ulimit -i) the mark is lost, with the rest of
 * what it says. */
static bool is_own(Thread *t, siginfo_t *info) {
    bool own = signal_unmark(info), lost = info->si_code == SI_USER && info->si_pid == 0;
    if (t == NULL) return own;
    own |= lost && (t->sig.sent & SIGBIT(info->si_signo));
    if (own) t->sig.sent &= ~SIGBIT(info->si_signo);
    return own;
}

/* What a nudge's handler takes. The signal that preempts would be lost where the runtime's is
 * pending: it stays queued. */
static uint64_t by_nudge(const Thread *t) { return SIGBIT(sigs.preempts) | t->sig.refused; }

/* With all signals blocked. The kernel has no room for it (ulimit -i). The signal that preempts
 * needs none. Without a handler it is the process's end, or nothing. */
static void send_refused(Thread *t, const siginfo_t *info) {
    struct sigaction act;
    core->sigaction(info->si_signo, NULL, &act);
    if (act.sa_handler == SIG_DFL)
        sys(SYS_kill, sys(SYS_getpid, 0, 0, 0, 0, 0, 0), info->si_signo, 0, 0, 0, 0);
    if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN) return;
    sigs_lock();
    signal_put_back_locked(&t->sig.queue, info);
    t->sig.refused |= SIGBIT(info->si_signo);
    cause_locked(t);
    store_rel(&sigs.lock, 0); /* as sigs_unlock */
    core->body_nudge(load_rlx(&t->sig.body->worn));
}

/* With all signals blocked, which the caller ends: then it comes. */
static int deliver_next(Thread *t) {
    siginfo_t info;
    int signo = next_locked(t, ~by_nudge(t), &info);
    bool due = signo == 0 && cancel_due(t), more = cause_locked(t);
    store_rel(&sigs.lock, 0); /* as sigs_unlock */
    if (signo) {
        if (!queue_self(t, &info)) send_refused(t, &info);
    } else if (due) cancel_raise();
    else if (more) core->body_nudge(load_rlx(&t->sig.body->worn));
    return due ? SIGCANCEL : signo;
}

void signals_deliver(Thread *t) {
    uint32_t calls = t->sig.calls;
    t->sig.calls = 0;
    for (int signo = 1; signo;) {
        sigs_lock();
        signo = deliver_next(t);
        kernel_mask(t->sig.body->mask);
        if (unlikely(signo == SIGCANCEL && cancel_due(t))) cancel_tell(t); /* as send_refused */
    }
    t->sig.calls = calls;
}

bool thread_interrupted(void) {
    Thread *t = thread_me();
    return t && load_rlx(&t->sig.cause) != 0; /* a hint: the next wait looks (ender_arm) */
}

static void wait_unwound(void *t) { core->hooks_unwound(((Thread *)t)->gp); }

/* As a rule in a wait, whose exit hook is in its frame. */
void thread_attend(void) {
    Thread *t = thread_me();
    if (t == NULL || !load_rlx(&t->sig.body->attention)) return;
    pthread_cleanup_push(wait_unwound, t);
    signals_deliver(t);
    pthread_cleanup_pop(0);
}

/* ---- calls that wait ------------------------------------------------------------------------- */

/* At a point, with `calls`: libc is not told from here on; what it knows already is looked at. */
static NOINLINE void stay_cancelled(Thread *t) {
    if (t->sig.noted) {
        t->sig.calls = 0;
        cancel_act(t); /* may not return */
        t->sig.calls = 1;
    }
    uint64_t old = sigs_lock();
    cause_locked(t);
    sigs_unlock(old);
}

bool thread_stay(bool point) {
    Thread *t = thread_me();
    if (unlikely(t == NULL)) return core->stay_begin(); /* a goroutine of the program's own */
    if (t->sig.calls) return false;
    if (unlikely(load_rlx(&t->sig.body->attention))) signals_deliver(t);
    t->sig.calls = 1;
    if (point) {
        store_seq(&t->sig.point, 1); /* a Dekker pair with pthread_cancel */
        if (unlikely(load_seq(&t->sig.cancelled))) stay_cancelled(t);
    }
    return true;
}

bool thread_stay_over(long r, bool restarts) {
    Thread *t = thread_me();
    if (unlikely(t == NULL)) {
        core->stay_end();
        return false;
    }
    bool point = load_rlx(&t->sig.point);
    store_rlx(&t->sig.point, 0);
    t->sig.calls = 0;
    uint32_t handled = t->sig.handled;
    t->sig.breaks = false;
    if (unlikely(load_rlx(&t->sig.body->attention))) signals_deliver(t);
    if (point && r < 0) cancel_act(t); /* perhaps not what has ended it, but nothing was done */
    if (r != -EINTR) return false;
    bool again = handled == t->sig.handled || (restarts && !t->sig.breaks);
    return again && thread_stay(point);
}

/* ThreadSignals.ended: by handlers that have SA_RESTART, or not. */
enum { NOT_ENDED, ENDED, BROKEN };

/* The handler has interrupted a hot_call that gives EINTR. */
static bool ends_call(Thread *t, void *context) {
    M *m = load_rlx(&t->sig.body->worn);
    return t->sig.calls == 0 && load_rlx(&m->hot_sp) == core->context_sp(context) &&
           core->context_result(context) == -EINTR;
}

bool thread_call_ended(bool restarts) {
    Thread *t = thread_me();
    int how = t ? t->sig.ended : NOT_ENDED;
    if (t) t->sig.ended = NOT_ENDED;
    return how == BROKEN || (how == ENDED && !restarts);
}

typedef struct Blocking {
    long (*fn)(void *);
    void *arg;
} Blocking;

/* Outside again. A nudge from here on is taken by its handler (is_outside); one before, in the
 * section that begins the call, was left to this look, as the call may never end by itself. */
static long attended_call(void *arg) {
    Blocking *b = arg;
    thread_attend();
    return b->fn(b->arg);
}

long thread_blocking(long (*fn)(void *), void *arg) {
    return gort_blocking(attended_call, &(Blocking){fn, arg});
}

/* ---- handlers -------------------------------------------------------------------------------- */

static bool is_fault(int signo, const siginfo_t *info) {
    bool kind = signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL ||
                signo == SIGTRAP || signo == SIGSYS;
    return kind && info->si_code > 0;
}

/* The interrupted code of t, on m, is the program's, or a call that blocks the kernel thread. */
static bool is_outside(Thread *t, M *m, void *context) {
    if (m->locks != m->pins + load_rlx(&m->rest) || m->curg == NULL || m->unlocking) return false;
    if (core->context_sp(context) - (uintptr_t)m->altstack < ALT_STACK) return false;
    return t->sig.calls == 0 || load_rlx(&m->curg->status) == G_SYSCALL;
}

/* In a handler that has interrupted t in the runtime. The section looks when it ends (ATTN_SIGNAL),
 * but some end without a look, and t may then compute for long: the monitor nudges it again. */
static void look_later(Thread *t, M *m) {
    if (t->sig.calls) return; /* it looks */
    or_seq(&m->attn, ATTN_SIGNAL);
    owe_wake(t);
}

/* In a handler on a kernel thread that wears nobody: it takes no more signals until it does. */
static void keep_out(M *m, void *context) {
    uint64_t all = kernel_part(ALL_SIGNALS);
    ucontext_t *uc = context;
    __builtin_memcpy(&uc->uc_sigmask, &all, sizeof all);
    store_rel(&m->sigmask, all); /* as wear_mask: the handler returns before it wears anybody */
}

/* own: t has sent it to itself, and nobody else gets it. */
static void defer(Thread *t, M *m, const siginfo_t *info, bool own) {
    uint64_t old = sigs_lock();
    bool wanted = own || takes(t, info->si_signo);
    if (wanted) {
        signal_add_locked(&t->sig.queue, info, !own);
        cause_locked(t);
    }
    sigs_unlock(old);
    if (!wanted) {
        signal_route(info);
        return;
    }
    core->body_interrupt(m, t->gp); /* about to park, at most: not parked yet */
    look_later(t, m);
}

static bool main_takes(int signo) {
    const Thread *first = &first_thread;
    return first->state == THREAD_LIVES && !(first->sig.mask & SIGBIT(signo));
}

Thread *signals_me(void) {
    Thread *t = thread_me();
    return t && t->sig.body ? t : NULL;
}

/* The kernel gives the process's to its first thread if that takes it, but it does not know which
 * kernel thread that is. The timers of CPU time and what a call of the thread's own causes are for
 * the thread that runs. */
static bool is_mains(Thread *t, int signo, const siginfo_t *info) {
    bool runs = signo == SIGPROF || signo == SIGVTALRM || signo == SIGPIPE || signo == SIGXFSZ;
    return t != &first_thread && !runs && info->si_code != SI_TKILL && main_takes(signo);
}

int signal_comes(int signo, siginfo_t *info, void *context) {
    Thread *t = signals_me();
    M *m = t ? load_rlx(&t->sig.body->worn) : runner_at(known.tls);
    bool own = is_own(t, info);
    if (hook_in_child() || vforked()) return SIGNAL_AS_EVER;
    if (t && m) {
        bool outside = is_outside(t, m, context);
        if (is_fault(signo, info)) return outside ? SIGNAL_HERE : SIGNAL_AS_EVER;
        Thread *to = NULL;
        bool timers = !own && timer_thread(info, &to);
        own |= timers && to == t;
        bool others = !own && (timers || is_mains(t, signo, info));
        if (outside && !others && !(t->sig.mask & sigs.kept & SIGBIT(signo))) return SIGNAL_HERE;
        if (others) signal_route(info);
        else defer(t, m, info, own);
        return SIGNAL_TAKEN;
    }
    if (is_fault(signo, info) || (m == NULL && !catcher_here())) return SIGNAL_AS_EVER;
    signal_route(info);
    if (m) keep_out(m, context);
    return SIGNAL_TAKEN;
}

/* sigs.lock. It goes with the thread; the kernel has it, or will have. */
static void handler_mask_locked(Thread *t, uint64_t mask) {
    mask_note_locked(t, mask);
    uint64_t part = kernel_part(mask) | SIGBIT(SIGKILL);
    t->sig.body->mask = part;
    store_rlx(&load_rlx(&t->sig.body->worn)->sigmask, part);
}

/* The note of a call that is made as it is (hook/optimistic.c) is in the M, and the handler may go
 * on with another: the kernel is not to make the call again. It goes on as a goroutine's. */
static void hot_call_ends(M *m, void *context) {
    if (load_rlx(&m->hot_sp) == core->context_sp(context)) core->end_call(context);
}

void signal_runs(int signo, siginfo_t *info, void *context) {
    Thread *t = thread_me();
    ThreadSignals *s = &t->sig;
    ucontext_t *uc = context;
    uint32_t calls = s->calls, point = load_rlx(&s->point);
    uint64_t kept = s->mask & sigs.kept; /* of which the kernel knows nothing */
    bool ends = ends_call(t, context);
    timer_taken(info);
    uint64_t mask = sigs_lock();
    hot_call_ends(load_rlx(&s->body->worn), context);
    handler_mask_locked(t, mask | kept);
    s->calls = 0;
    store_rlx(&s->point, 0);
    s->handled++;
    /* in its own handler, too, the signal that preempts comes; a fault ends the process */
    sigs_unlock(kernel_part(mask) | (mask & SIGBIT(SIGSEGV)));
    signals_give_back(t);
    bool breaks = handler_call(signo, info, context);
    s->breaks |= breaks;
    if (ends) s->ended = breaks ? BROKEN : ENDED;
    sigs_lock();
    __builtin_memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    handler_mask_locked(t, mask | kept);
    s->calls = calls;
    store_rlx(&s->point, point);
    M *m = load_rlx(&s->body->worn);
    uc->uc_stack.ss_sp = m->altstack;
    uc->uc_stack.ss_size = ALT_STACK;
    uc->uc_stack.ss_flags = 0;
    deliver_next(t);
}

/* What its handler runs with, as the kernel does it. */
static void mask_for_handler(int signo) {
    struct sigaction act;
    uint64_t mask;
    core->sigaction(signo, NULL, &act);
    __builtin_memcpy(&mask, &act.sa_mask, sizeof mask);
    if (!(act.sa_flags & SA_NODEFER)) mask |= SIGBIT(signo);
    mask = kernel_part(mask);
    sys(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof mask, 0, 0);
}

/* In the handler of a nudge, outside: one of t's that comes by no other way. */
static bool taken_here(Thread *t, void *context) {
    siginfo_t info;
    uint64_t there = load_rlx(&t->sig.queue.set) | load_rlx(&sigs.process.set);
    if (!(there & by_nudge(t))) return false; /* a hint: who queues it nudges */
    uint64_t old = sigs_lock();
    int signo = next_locked(t, by_nudge(t), &info);
    if (signo && !(t->sig.queue.set & SIGBIT(signo))) t->sig.refused &= ~SIGBIT(signo);
    cause_locked(t);
    sigs_unlock(old);
    if (signo == 0) return false;
    mask_for_handler(signo);
    if (handler_breaks(signo)) core->end_call(context);
    handler_enter(signo, &info, context); /* may not return */
    return true;
}

/* What the handler of the preemption signal does beside (body.h). */
static bool signals_nudged(M *m, void *context, bool outside) {
    Thread *t = signals_me();
    if (t == NULL || load_rlx(&t->sig.body->worn) != m) {
        if (t == NULL && !m->plain) keep_out(m, context);
        return false;
    }
    if (!load_rlx(&t->sig.body->attention)) { /* set before the nudge was sent */
        and_seq(&m->attn, ~(uint32_t)ATTN_SIGNAL);
        return false;
    }
    if (!is_outside(t, m, context)) {
        look_later(t, m);
        return false;
    }
    and_seq(&m->attn, ~(uint32_t)ATTN_SIGNAL);
    if (taken_here(t, context)) return true;
    uint64_t old = sigs_lock();
    int signo = deliver_next(t);
    if (signo == 0) kernel_mask(old);
    else if (handler_breaks(signo)) core->end_call(context);
    return signo != 0;
}

/* A section has ended (body.h). */
static void signals_attend(M *m) {
    Thread *t = signals_me();
    if (t == NULL || t->sig.calls) return;
    and_seq(&m->attn, ~(uint32_t)ATTN_SIGNAL); /* after this a nudge sets it again */
    if (load_rlx(&t->sig.body->attention)) signals_deliver(t);
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void list_locked(Thread *t) {
    t->sig.listed = true;
    t->sig.prev = sigs.last;
    t->sig.next = NULL;
    *(sigs.last ? &sigs.last->sig.next : &sigs.first) = t;
    sigs.last = t;
}
static void unlist_locked(Thread *t) {
    t->sig.listed = false;
    *(t->sig.prev ? &t->sig.prev->sig.next : &sigs.first) = t->sig.next;
    *(t->sig.next ? &t->sig.next->sig.prev : &sigs.last) = t->sig.prev;
}

/* Between lives it blocks everything. */
void signals_ready(Thread *t) {
    t->sig.mask = ALL_SIGNALS;
    t->sig.body =
        core->body_signals(t->gp, &t->sig.cause, kernel_part(ALL_SIGNALS) | SIGBIT(SIGKILL));
}

void signals_clear(Thread *t) {
    siginfo_t info;
    t->sig.sent = t->sig.refused = 0;
    if (t->sig.queue.set) { /* it is spare, and in no list: nobody adds to it */
        uint64_t old = sigs_lock();
        while (signal_take_locked(&t->sig.queue, ALL_SIGNALS, &info)) {}
        sigs_unlock(old);
    }
    cancel_begin(t);
}

/* As sigs_lock where the thread blocks everything: what is left are the runtime's own signals,
 * which do nothing in a section. Two system calls less in each life. */
static M *sigs_lock_closed(void) {
    M *m = core->enter();
    while (xchg_acq(&sigs.lock, 1)) sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    return m;
}
static void sigs_unlock_closed(M *m) {
    store_rel(&sigs.lock, 0); /* as sigs_unlock */
    core->leave(m);
}

void signals_begin(Thread *t, uint64_t mask) {
    M *m = sigs_lock_closed();
    list_locked(t);
    sigs_unlock_closed(m);
    mask_set(t, mask);
    thread_attend();
}

void signals_end(Thread *t) {
    thread_attend(); /* what came before has its handler: some sections end without a look */
    mask_set(t, ALL_SIGNALS);
    M *m = sigs_lock_closed();
    unlist_locked(t);
    timers_end_locked(t);
    store_rlx(&t->sig.cause, 0);
    store_rlx(&t->sig.body->attention, 0);
    sigs_unlock_closed(m);
    while (load_acq(&t->sig.wakers)) { /* they have come by sigs.lock, when t was listed */
        if (xchg_seq(&t->sig.owed, 0)) sub_seq(&t->sig.wakers, 1);
        else core->sleep_until(deadline_after(50 * GORT_US));
    }
    altstack_forget();
}

static const int never_blocked[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGCANCEL, SIGSETXID};

void signals_start(void) {
    for (int signo = 1; signo < NSIG; signo++)
        if (core->keeps_signal(signo)) sigs.kept |= SIGBIT(sigs.preempts = signo);
    for (size_t i = 0; i < count_of(never_blocked); i++) sigs.kept |= SIGBIT(never_blocked[i]);
    sigs.closed = ALL_SIGNALS;
    handlers_adopt();
    core->body_attach(signals_nudged, signals_attend, signal_route);
    catcher_start();
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* To the caller's own thread. */
static int post_self(Thread *t, const siginfo_t *info) {
    if (!(t->sig.mask & SIGBIT(info->si_signo)) && info->si_signo != sigs.preempts) {
        if (!queue_self(t, info)) return EAGAIN;
        if (core->in_valgrind) kernel_mask(t->sig.body->mask); /* gives it at the next call only */
        return 0;
    }
    uint64_t old = sigs_lock();
    bool room = signal_add_locked(&t->sig.queue, info, false);
    cause_locked(t);
    sigs_unlock(old);
    thread_attend();
    return room ? 0 : EAGAIN;
}

/* In a section, with threads.lock: t does not end. */
static int post(Thread *t, M *m, const siginfo_t *info) {
    uint64_t old = sigs_lock();
    int signo = info->si_signo;
    bool drop = t->state != THREAD_LIVES || (!(t->sig.mask & SIGBIT(signo)) && is_ignored(signo));
    bool room = drop || signal_add_locked(&t->sig.queue, info, false);
    bool wakes = !drop && room && takes(t, signo);
    if (wakes) cause_locked(t);
    sigs_unlock(old);
    if (wakes) thread_wake(t, m);
    return room ? 0 : EAGAIN;
}

static siginfo_t info_of(int signo, int code) {
    siginfo_t info = {.si_signo = signo, .si_code = code};
    info.si_pid = (pid_t)sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
    info.si_uid = (uid_t)sys(SYS_getuid, 0, 0, 0, 0, 0, 0);
    return info;
}

static bool is_valid(int signo) {
    return signo >= 0 && signo < NSIG && signo != SIGCANCEL && signo != SIGSETXID;
}

static int post_to(Thread *t, M *m, const siginfo_t *info) {
    return info->si_signo == 0 ? 0 : post(t, m, info);
}

/* False: not ours. */
static bool thread_kill(pthread_t id, const siginfo_t *info, int *r) {
    Thread *t = thread_me();
    if (!is_valid(info->si_signo)) {
        *r = EINVAL;
        return true;
    }
    if (t && t->id == id) {
        *r = info->si_signo ? post_self(t, info) : 0;
        return true;
    }
    M *m = threads_lock();
    t = thread_find(id);
    if (t) *r = post_to(t, m, info);
    threads_unlock(m);
    return t != NULL;
}

HOOK int pthread_kill(pthread_t id, int signo) {
    int r;
    if (!as_goroutines()) return libc(pthread_kill)(id, signo);
    siginfo_t info = info_of(signo, SI_TKILL);
    return thread_kill(id, &info, &r) ? r : libc(pthread_kill)(id, signo);
}

HOOK int pthread_sigqueue(pthread_t id, int signo, const union sigval value) {
    int r;
    if (!as_goroutines()) return libc(pthread_sigqueue)(id, signo, value);
    siginfo_t info = info_of(signo, SI_QUEUE);
    info.si_value = value;
    return thread_kill(id, &info, &r) ? r : libc(pthread_sigqueue)(id, signo, value);
}

HOOK int raise(int signo) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t == NULL) return libc(raise)(signo);
    return (int)returned(-pthread_kill(t->id, signo));
}

/* The number is of one of ours. In a section, with threads.lock; NULL: no. */
static Thread *thread_numbered(int tid) {
    for (int i = 0; i < THREAD_BUCKETS; i++)
        for (Thread *t = threads.buckets[i]; t; t = t->next)
            if (t->tid == tid && t->state != THREAD_SPARE) return t;
    return NULL;
}

/* ESRCH: none of ours, perhaps the kernel's. */
static int number_kill(pid_t tid, int signo) {
    Thread *t = thread_me();
    siginfo_t info = info_of(signo, SI_TKILL);
    if (t && t->tid == tid) return signo ? post_self(t, &info) : 0;
    M *m = threads_lock();
    t = thread_numbered(tid);
    int r = t ? post_to(t, m, &info) : ESRCH;
    threads_unlock(m);
    return r;
}

bool signals_syscall(long number, long a, long b, long c, long *r) {
    if (number == SYS_tkill) *r = is_valid((int)b) ? number_kill((int)a, (int)b) : ESRCH;
    else if (number == SYS_tgkill && a == sys(SYS_getpid, 0, 0, 0, 0, 0, 0))
        *r = is_valid((int)c) ? number_kill((int)b, (int)c) : ESRCH;
    else return false;
    *r = -*r;
    return *r != -ESRCH;
}

HOOK int tgkill(pid_t pid, pid_t tid, int signo) {
    if (!as_goroutines() || pid != sys(SYS_getpid, 0, 0, 0, 0, 0, 0) || !is_valid(signo))
        return libc(tgkill)(pid, tid, signo);
    int r = number_kill(tid, signo);
    return r == ESRCH ? libc(tgkill)(pid, tid, signo) : (int)returned(-r);
}

/* To the own process: to main where that takes it, as the kernel does, or to the caller, before the
 * call returns; or to another that takes it, and then has it when the call returns. What none takes
 * is the kernel's to give. */
static bool kill_self(int signo, const siginfo_t *info) {
    Thread *t = thread_me();
    bool preempts = signo == sigs.preempts; /* the kernel does not keep it for one that takes it */
    if (t == NULL || signo <= 0 || !is_valid(signo)) return false;
    if ((sigs.kept & SIGBIT(signo)) && !preempts) return false;
    bool own = !(t->sig.mask & SIGBIT(signo)), mains = t != &first_thread && main_takes(signo);
    if (own && !mains) return post_self(t, info) == 0;
    bool taken = load_rlx(&sigs.open[signo]) != 0 || load_rlx(&sigs.awaited[signo]) != 0;
    if (!taken && !preempts) return false;
    signal_route(info);
    return true;
}

HOOK int kill(pid_t pid, int signo) {
    if (as_goroutines() && pid == sys(SYS_getpid, 0, 0, 0, 0, 0, 0)) {
        siginfo_t info = info_of(signo, SI_USER);
        if (kill_self(signo, &info)) return 0;
    }
    return libc(kill)(pid, signo);
}

HOOK int sigqueue(pid_t pid, int signo, const union sigval value) {
    if (as_goroutines() && pid == sys(SYS_getpid, 0, 0, 0, 0, 0, 0)) {
        siginfo_t info = info_of(signo, SI_QUEUE);
        info.si_value = value;
        if (kill_self(signo, &info)) return 0;
    }
    return libc(sigqueue)(pid, signo, value);
}
