/*
 * Masks: what a thread blocks goes with it, from one kernel thread to the next.
 *
 * Thread.sig.mask is what the program sees. A kernel thread that wears a thread (body_wear) has
 * that mask in the kernel, less what is never blocked there (sigs.kept: the signal that preempts,
 * SIGSEGV, libc's two). So signals that come to it are signals that its thread takes. Threads with
 * equal masks follow each other on a kernel thread without a system call.
 *
 * A signal that every thread blocks has to stay in the kernel: it is pending there for sigwait,
 * sigpending, signalfd, and does not take its default action. But a kernel thread that wears nobody
 * (on g0, asleep) still has the mask of the last one. So:
 *
 *   1  sigs.closed is what all living threads block, and sigs.open counts for each signal those
 *      that do not.
 *   2  A thread that blocks a signal as the last one adds it to sigs.closed, then waits for each
 *      kernel thread that lets it through (M.sigmask says what that blocks at least) to take a
 *      nudge. The handler (signals.c) makes such a kernel thread block everything until it wears a
 *      thread again. It had the mask of a thread that has blocked the signal since: one that wears
 *      a thread now, or begins to, has a mask that holds sigs.closed.
 *   3  What only parked threads let through is for the catcher (sigwait.c), a kernel thread with
 *      sigs.closed as its mask. It is waited for likewise.
 *
 * Orders: sigs.closed, then M.sigmask are read, behind a barrier everywhere; a wearer stores what
 * both masks block, changes the mask in the kernel, stores the new one (wear_mask, body.c). A mask
 * that is worn later holds sigs.closed, since its thread is counted before it lets a signal
 * through.
 */
#include "threads/signals.h"

Sigs sigs;

uint64_t kernel_mask(uint64_t mask) {
    uint64_t old = 0;
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof mask, 0, 0);
    return old;
}

uint64_t sigs_lock(void) {
    uint64_t old = kernel_mask(ALL_SIGNALS);
    while (xchg_acq(&sigs.lock, 1)) sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    return old;
}

void sigs_unlock(uint64_t mask) {
    store_rel(&sigs.lock, 0); /* pairs with the next holder's exchange */
    kernel_mask(mask);
}

/* ---- what all block -------------------------------------------------------------------------- */

bool mask_note_locked(Thread *t, uint64_t mask) {
    uint64_t closed = sigs.closed;
    for (uint64_t opens = t->sig.mask & ~mask; opens; opens &= opens - 1)
        if (sigs.open[LOWEST(opens)]++ == 0) closed &= ~(opens & -opens);
    for (uint64_t shuts = mask & ~t->sig.mask; shuts; shuts &= shuts - 1)
        if (--sigs.open[LOWEST(shuts)] == 0) closed |= shuts & -shuts;
    uint64_t more = closed & ~sigs.closed;
    bool changed = closed != sigs.closed;
    t->sig.mask = mask;
    store_rlx(&sigs.closed, closed);
    if (changed) catcher_nudge();
    return kernel_part(more) != 0;
}

static bool lets_through(M *m, uint64_t closed) {
    if (!load_rlx(&m->alive) || m->plain) return false;
    return (closed & ~load_acq(&m->sigmask)) != 0; /* pairs with wear_mask */
}

void masks_settle(void) {
    uint64_t closed = kernel_part(load_rlx(&sigs.closed));
    core->barrier_everywhere();
    for (M *m = load_acq(core->all_ms); m; m = m->all)
        while (lets_through(m, closed & load_rlx(&sigs.closed))) {
            struct timespec ts = {0, 20 * GORT_US};
            core->body_nudge(m);
            sys(SYS_nanosleep, &ts, NULL, 0, 0, 0, 0);
        }
    while (closed & load_rlx(&sigs.closed) & ~load_acq(&sigs.catches))
        sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* The thread's, and with it that of the kernel thread under it, which it comes back to. */
static bool mask_install(Thread *t, uint64_t mask) {
    sigs_lock();
    bool more = mask_note_locked(t, mask);
    bool looks = cause_locked(t);
    uint64_t part = kernel_part(mask) | SIGBIT(SIGKILL);
    t->sig.body->mask = part;
    store_rlx(&load_rlx(&t->sig.body->worn)->sigmask, part);
    sigs_unlock(part);
    if (more) masks_settle();
    signals_give_back(t);
    return looks;
}

void mask_set(Thread *t, uint64_t mask) {
    if (mask == t->sig.mask) return;
    catcher_settle(t->sig.mask & ~mask);
    if (mask_install(t, mask)) signals_deliver(t);
}

static uint64_t of_set(const sigset_t *set) {
    uint64_t mask;
    __builtin_memcpy(&mask, set, sizeof mask);
    return mask & ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP) | SIGBIT(SIGCANCEL) | SIGBIT(SIGSETXID));
}

static int mask_change(Thread *t, int how, const sigset_t *set, sigset_t *old) {
    uint64_t was = t->sig.mask, asked = set ? of_set(set) : 0;
    if (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK) return EINVAL;
    if (old) {
        sigemptyset(old);
        __builtin_memcpy(old, &was, sizeof was);
    }
    if (set)
        mask_set(t, how == SIG_BLOCK ? was | asked : how == SIG_UNBLOCK ? was & ~asked : asked);
    return 0;
}

HOOK int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    Thread *t = as_goroutines() ? signals_me() : NULL;
    return t ? mask_change(t, how, set, old) : libc(pthread_sigmask)(how, set, old);
}

HOOK int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    Thread *t = as_goroutines() ? signals_me() : NULL;
    return t ? (int)returned(-mask_change(t, how, set, old)) : libc(sigprocmask)(how, set, old);
}

/* The older names, whose masks are a set with one signal, or the first 32. */
static int one_changed(Thread *t, int how, int signo) {
    sigset_t one;
    sigemptyset(&one);
    if (sigaddset(&one, signo) != 0) return -1; /* errno */
    return (int)returned(-mask_change(t, how, &one, NULL));
}
HOOK int sighold(int signo) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? one_changed(t, SIG_BLOCK, signo) : libc(sighold)(signo);
}
HOOK int sigrelse(int signo) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? one_changed(t, SIG_UNBLOCK, signo) : libc(sigrelse)(signo);
}

static int old_changed(Thread *t, int how, int mask) {
    uint64_t asked = (uint32_t)mask;
    sigset_t set, was;
    sigemptyset(&set);
    __builtin_memcpy(&set, &asked, sizeof asked);
    mask_change(t, how, &set, &was);
    return *(int *)(void *)&was;
}
HOOK int sigblock(int mask) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? old_changed(t, SIG_BLOCK, mask) : libc(sigblock)(mask);
}
HOOK int sigsetmask(int mask) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? old_changed(t, SIG_SETMASK, mask) : libc(sigsetmask)(mask);
}

uint64_t mask_exchange(Thread *t, const sigset_t *set) {
    uint64_t was = t->sig.mask;
    mask_set(t, of_set(set));
    return was;
}

/* What the mask lets in is deferred to the end of a wait, which it ends: none comes unnoticed. */
long thread_masked(const sigset_t *mask, long (*fn)(void *), void *arg) {
    Thread *t = thread_me();
    if (t == NULL) return fn(arg); /* a goroutine of the program's own */
    bool mine = thread_stay(true);
    uint64_t was = t->sig.mask;
    long r;
    mask_install(t, of_set(mask));
    do r = fn(arg);
    while (stay_over(mine, r, false));
    mask_set(t, was);
    return r;
}

/* ---- jumps ----------------------------------------------------------------------------------- */

/* Out of a handler, as a rule: the mask that sigsetjmp has saved is the thread's, before libc's own
 * jump gives it to the kernel thread. */
static void mask_of_jump(struct __jmp_buf_tag *env) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t == NULL || !env->__mask_was_saved) return;
    sigset_t set;
    __builtin_memcpy(&set, &env->__saved_mask, sizeof set);
    mask_exchange(t, &set);
}

HOOK void siglongjmp(sigjmp_buf env, int value) {
    mask_of_jump(env);
    libc(siglongjmp)(env, value);
    __builtin_unreachable();
}
HOOK void longjmp(jmp_buf env, int value) __attribute__((alias("siglongjmp")));
HOOK void _longjmp(jmp_buf env, int value) __attribute__((alias("siglongjmp")));
HOOK __typeof__(siglongjmp) __longjmp_chk __THROWNL __attribute__((noreturn, alias("siglongjmp")));
