/*
 * Waiting for signals: sigwait and its like, sigsuspend, pause, sigpending. And the catcher.
 *
 * The catcher is a kernel thread of the hook's. Its mask is what all threads block (sigs.closed),
 * so that a signal for the process which only parked threads take comes to it, and is passed on
 * (signal_route). And it waits, as by sigtimedwait(2), for all that any thread waits for in
 * sigwait: what all block stays pending in the kernel, where only such a call fetches it. SIGURG is
 * blocked there and waited for: by it others tell of changed sets, and none is missed.
 *
 * A thread in sigwait has `waits`; with a signal in it, queued for the thread or the process, its
 * wait ends as by any signal (cause_locked), and it takes what it waited for before a handler runs.
 * One that stays in the kernel for all it knows it asks for once, behind `waits`: from then on the
 * catcher has it.
 */
#include "threads/signals.h"

#define CATCHER_STACK ((size_t)256 << 10)

static __thread bool is_catcher __attribute__((tls_model("initial-exec")));
bool catcher_here(void) { return is_catcher; }

void catcher_nudge(void) {
    int tid = load_rlx(&sigs.catcher);
    if (tid) sys(SYS_tgkill, sys(SYS_getpid, 0, 0, 0, 0, 0, 0), tid, SIGURG, 0, 0, 0);
}

/* The kernel's, which waits in pieces of any length. 0: -errno is in the result. */
static long kernel_wait(uint64_t set, siginfo_t *info, const struct timespec *ts) {
    long r = sys(SYS_rt_sigtimedwait, &set, info, ts, sizeof set, 0, 0);
    if (r > 0) signal_unmark(info);
    return r;
}

static bool is_nudge(const siginfo_t *info) {
    return info->si_signo == SIGURG && info->si_code == SI_TKILL &&
           info->si_pid == sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* What the catcher may have fetched of the set is with a thread, or in sigs.process; from here on
 * it fetches what is waited for now. */
void catcher_settle(uint64_t set) {
    if (!(load_rlx(&sigs.fetches) & set)) return;
    uint32_t round = load_acq(&sigs.rounds); /* pairs with catcher_main: it has routed */
    catcher_nudge();
    while (load_acq(&sigs.rounds) == round) sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void *catcher_main(void *arg) {
    is_catcher = true;
    libc(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, NULL);
    core->m_is_ours();
    store_seq(&sigs.catcher, (int)sys(SYS_gettid, 0, 0, 0, 0, 0, 0));
    for (;;) {
        uint64_t old = sigs_lock(), waited = sigs.waited | SIGBIT(SIGURG);
        uint64_t mask = sigs.closed | SIGBIT(SIGURG);
        siginfo_t info;
        store_rlx(&sigs.fetches, waited & ~SIGBIT(SIGURG));
        store_rel(&sigs.rounds, sigs.rounds + 1); /* pairs with catcher_settle */
        sigs_unlock(old | mask);                  /* both, until it is said */
        store_rel(&sigs.catches, mask & old);     /* pairs with masks_settle */
        kernel_mask(mask);
        store_rel(&sigs.catches, mask);
        if (kernel_wait(waited, &info, NULL) > 0 && !is_nudge(&info)) signal_route(&info);
    }
    return NULL;
}

static pthread_t catcher_thread;

void catcher_cancel(void) { libc(pthread_cancel)(catcher_thread); }

void catcher_start(void) {
    pthread_attr_t attr;
    uint64_t old = kernel_mask(ALL_SIGNALS & ~LIBCS_SIGNALS);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, CATCHER_STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigs.catches = ALL_SIGNALS;
    libc(pthread_create)(&catcher_thread, &attr, catcher_main, NULL);
    pthread_attr_destroy(&attr);
    kernel_mask(old);
}

/* ---- sigwait --------------------------------------------------------------------------------- */

/* sigs.lock */
static void await_locked(Thread *t, uint64_t set) {
    uint64_t waited = sigs.waited;
    for (uint64_t more = set & ~t->sig.waits; more; more &= more - 1)
        if (sigs.awaited[LOWEST(more)]++ == 0) waited |= more & -more;
    for (uint64_t less = t->sig.waits & ~set; less; less &= less - 1)
        if (--sigs.awaited[LOWEST(less)] == 0) waited &= ~(less & -less);
    t->sig.waits = set;
    bool more = (waited & ~sigs.waited) != 0;
    sigs.waited = waited;
    if (more) catcher_nudge();
}

/* One that is there, and then the thread waits no more; 0: it waits. */
static int wait_take(Thread *t, uint64_t set, siginfo_t *info) {
    uint64_t old = sigs_lock();
    int signo = signal_take_locked(&t->sig.queue, set, info);
    if (signo == 0) signo = signal_take_locked(&sigs.process, set, info);
    await_locked(t, signo ? 0 : set);
    cause_locked(t);
    sigs_unlock(old);
    if (signo) signals_give_back(t);
    return signo;
}

static void await_ends(Thread *t) {
    uint64_t old = sigs_lock();
    await_locked(t, 0);
    cause_locked(t);
    sigs_unlock(old);
    signals_give_back(t);
}

/* A handler that has interrupted a call which blocks its kernel thread waits there. A thread
 * that is alone (cancel.c) does so, too: its signals come here, and libc would ask the kernel. */
static bool is_blocking(const Thread *t) {
    M *m = load_rlx(&t->sig.body->worn);
    return m && m->curg && (load_rlx(&m->curg->status) == G_SYSCALL || t->sig.body->alone);
}

/* Who has a signal for t sets `cause`, then nudges the kernel thread. A nudge from before the mask
 * has had its handler, behind which `cause` is seen; a later one is pending, and ends the poll. */
static int sleep_in_kernel(Thread *t, int64_t deadline) {
    uint64_t old = kernel_mask(ALL_SIGNALS), mask = t->sig.body->mask;
    int64_t left = time_left(deadline, gort_now());
    struct timespec ts = {left / GORT_SEC, left % GORT_SEC};
    long r = -EINTR;
    if (load_rlx(&t->sig.cause) == 0)
        r = sys(SYS_ppoll, NULL, 0, deadline == GORT_FOREVER ? NULL : &ts, &mask, sizeof mask, 0);
    kernel_mask(old);
    return (int)r;
}

static int sleep_for_signal(Thread *t, int64_t deadline) {
    if (is_blocking(t)) return sleep_in_kernel(t, deadline);
    core->signal_wait(1);
    int r = core->sleep_until(deadline);
    core->signal_wait(-1);
    return r;
}

static long wait_until_one(Thread *t, uint64_t set, siginfo_t *info, int64_t deadline) {
    struct timespec none = {0, 0};
    for (;;) {
        long r = wait_take(t, set, info);
        if (r > 0) return r;
        r = kernel_wait(set, info, &none);
        Thread *to = t;
        if (r > 0 && timer_thread(info, &to) && to != t) {
            signal_route(info);
            continue;
        }
        if (r > 0) await_ends(t);
        if (r > 0) return r;
        int ended = sleep_for_signal(t, deadline);
        if (ended == 0 || load_rlx(&t->sig.cause) != 0) { /* a hint: ender_arm looks */
            if (ended == 0) catcher_settle(set);
            r = wait_take(t, set, info);
            await_ends(t);
            return r > 0 ? r : ended == 0 ? -EAGAIN : -EINTR;
        }
    }
}

/* A number; -EAGAIN: the deadline; -EINTR. The wait of a call that waits. */
static long wait_once(Thread *t, uint64_t set, siginfo_t *info, int64_t deadline) {
    long r = wait_until_one(t, set, info, deadline);
    if (r > 0) timer_taken(info);
    return r;
}

static long wait_signal(Thread *t, const sigset_t *sigset, siginfo_t *info, int64_t deadline,
                        bool restarts) {
    uint64_t set;
    siginfo_t own;
    __builtin_memcpy(&set, sigset, sizeof set);
    if (info == NULL) info = &own;
    long r = restarts ? staying(wait_once(t, set, info, deadline))
                      : staying_once(wait_once(t, set, info, deadline));
    if (r > 0 && info->si_code == SI_TKILL) info->si_code = SI_USER; /* as glibc */
    return r;
}

static Thread *waiter_here(void) {
    Thread *t = thread_me();
    return t && (here() || is_blocking(t)) ? t : NULL;
}

HOOK int sigwait(const sigset_t *restrict set, int *restrict signo) {
    Thread *t = as_goroutines() ? waiter_here() : NULL;
    if (t == NULL) return libc(sigwait)(set, signo);
    long r;
    while ((r = wait_signal(t, set, NULL, GORT_FOREVER, true)) == -EINTR) {} /* as glibc */
    if (r > 0) *signo = (int)r;
    return r > 0 ? 0 : (int)-r;
}

HOOK int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    Thread *t = as_goroutines() ? waiter_here() : NULL;
    if (t == NULL) return libc(sigwaitinfo)(set, info);
    return (int)returned(wait_signal(t, set, info, GORT_FOREVER, false));
}

HOOK int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                      const struct timespec *restrict ts) {
    Thread *t = as_goroutines() ? waiter_here() : NULL;
    int64_t deadline;
    if (t == NULL) return libc(sigtimedwait)(set, info, ts);
    if (!timeout_deadline(ts, &deadline)) return (int)returned(-EINVAL);
    return (int)returned(wait_signal(t, set, info, deadline, false));
}

/* ---- until a handler has run ----------------------------------------------------------------- */

static long until_handled(Thread *t, uint32_t handled) {
    while (t->sig.handled == handled) {
        int r = sleep_for_signal(t, GORT_FOREVER);
        if (r < 0 && t->sig.handled == handled) return r; /* one may run when the call ends */
    }
    return 0;
}

/* What handlers do not concern (an ignored signal) does not end it. */
static int wait_handler(Thread *t, uint32_t handled) {
    while (t->sig.handled == handled) staying_once(until_handled(t, handled));
    return (int)returned(-EINTR);
}

HOOK int pause(void) {
    Thread *t = as_goroutines() ? waiter_here() : NULL;
    return t ? wait_handler(t, t->sig.handled) : libc(pause)();
}

/* A handler that runs as the mask opens is one that it waits for. */
HOOK int sigsuspend(const sigset_t *set) {
    Thread *t = as_goroutines() ? waiter_here() : NULL;
    if (t == NULL) return libc(sigsuspend)(set);
    uint32_t handled = t->sig.handled;
    uint64_t mask = mask_exchange(t, set);
    int r = wait_handler(t, handled);
    mask_set(t, mask);
    set_errno(EINTR);
    return r;
}

HOOK int sigpending(sigset_t *set) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t) catcher_settle(ALL_SIGNALS);
    int r = libc(sigpending)(set);
    if (t == NULL || r != 0) return r;
    uint64_t there, old = sigs_lock();
    __builtin_memcpy(&there, set, sizeof there);
    there |= (t->sig.queue.set | sigs.process.set) & t->sig.mask;
    sigs_unlock(old);
    __builtin_memcpy(set, &there, sizeof there);
    return 0;
}
