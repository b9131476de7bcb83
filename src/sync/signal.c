/*
 * Signals as channels.
 *
 * The handler counts the delivery and wakes the signal thread by a futex. The thread offers the
 * number to every channel that watches it, once for each delivery; a full channel misses it. The
 * thread starts with the first watch and stays (ownthread.c); in a child of fork it starts with
 * gort_main. A house lock guards the table of watches, since nothing may be sent under a runtime
 * lock of the channels' rank.
 * sched.signal_channels counts the watches: a program that waits for a signal is not dead.
 *
 * What was installed for a signal before the first watch comes back after the last: the default,
 * the program's own handler, or the runtime's dump on SIGQUIT. Each signal takes one of the two
 * ways, and none is lost between them. counts[signo] has the bit OPEN while deliveries are counted:
 *
 *   the last gort_signal_stop        the handler, anywhere
 *   puts back what was there         OPEN is set: count one more, by the same CAS
 *   takes the count and OPEN in      else: send the signal, with all that came with it, to this
 *   one exchange, and delivers it    thread once more, which finds what was put back
 *
 * So after gort_signal_stop has returned nothing more arrives, and what came before it is there. In
 * a child the handler sees that the signal thread is of another process: it puts back what was
 * there itself and takes the second way. (A child of vfork has our memory, and its own handlers.)
 *
 * A handler that the program installs during a watch stays: nothing is put back over it. It may
 * pass signals on to count_signal(), which it has found there. After the watch those end here: sent
 * again, they would come back for ever (called_by_kernel). The next gort_signal_notify installs
 * count_signal() once more. Or the program puts it back after the watch: the next signal takes it
 * away again (step_aside).
 *
 * Orders: the handler's CAS (release) pairs with the thread's exchange (acquire); the futex word
 * changes with every delivery, so that a wait that begins after the thread has looked fails.
 */
#include "sync/chan.h"
#include "sync/houselock.h"
#include "sync/ownthread.h"

#include <signal.h>
#include <sys/syscall.h>

#define SIGNALS 65 /* 1 to 64 */
#define OPEN ((uint32_t)1 << 31)
#define LIBC_SIGNALS ((uint64_t)3 << 31) /* 32 and 33: thread cancellation, setuid, timers */

typedef struct SignalWatch {
    struct SignalWatch *next;
    gort_chan *ch; /* retained */
} SignalWatch;

static struct {
    HouseLock lock;
    /* lock: */
    SignalWatch *watches[SIGNALS];
    struct sigaction before[SIGNALS]; /* valid while watched */
    SignalWatch *spare;               /* of watches that are over: goroutines that the end of a
                                         runtime stops for good hold none */
    int pid;                          /* of the process that has the thread; 0: none yet */
} table;
/* atomic: */
static uint32_t counts[SIGNALS]; /* deliveries not yet passed on, and OPEN: it is watched */
static uint32_t changes;         /* the futex */

/* False: this signal is not counted now. */
static bool count_in(int signo) {
    uint32_t n = load_rlx(&counts[signo]);
    while (n & OPEN) /* pairs with xchg_acq in deliver */
        if (cas_seq(&counts[signo], &n, n + 1)) return true;
    return false;
}

/* To this thread, which has it masked: it arrives after the handler has returned. */
static void send_again(int signo, siginfo_t *info) {
    int pid = os_getpid();
    long r = os_sys(SYS_rt_tgsigqueueinfo, pid, os_gettid(), signo, (long)info, 0, 0);
    /* the queue is full: without its values the kernel takes it */
    if (r < 0) os_sys(SYS_kill, pid, signo, 0, 0, 0, 0);
}

static void count_signal(int signo, siginfo_t *info, void *context);

/* What is installed for the signal now is our handler. now: all of it. */
static bool ours_stands(int signo, struct sigaction *now) {
    return sigaction_at_once(signo, NULL, now) == 0 && (now->sa_flags & SA_SIGINFO) &&
           now->sa_sigaction == count_signal;
}

/* In count_signal(): the kernel has called it, and not the handler that is installed now. It runs
 * with every bit of the mask set, those too that sigfillset(3) leaves out for libc. If the other
 * handler was given such a mask, the two cannot be told apart: false. */
static bool called_by_kernel(const struct sigaction *now) {
    uint64_t mask = 0, theirs;
    memcpy(&theirs, &now->sa_mask, sizeof theirs);
    os_sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof mask, 0, 0);
    return (mask & ~theirs & LIBC_SIGNALS) != 0;
}

static int install_ours(int signo, struct sigaction *old) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART | HANDLER_STACK};
    sa.sa_sigaction = count_signal;
    memset(&sa.sa_mask, 0xff, sizeof sa.sa_mask);
    return sigaction_at_once(signo, &sa, old);
}

/* In count_signal(), which stands without a watch: in a child, or the program has put back what it
 * had found during one. A watch may begin meanwhile: then count_signal() is to stand. (hook_in sets
 * OPEN and then asks the kernel what stands; the kernel's lock orders that with our change.) */
static void step_aside(int signo, bool child) {
    sigaction_at_once(signo, &table.before[signo], NULL);
    if (!child && (load_acq(&counts[signo]) & OPEN)) install_ours(signo, NULL);
}

/* In our handler: a signal that is not counted goes to what was there before. */
static void pass_back(int signo, siginfo_t *info, bool child) {
    int saved = errno;
    struct sigaction now;
    bool ours = ours_stands(signo, &now);
    if (ours && (child || !(load_acq(&counts[signo]) & OPEN))) step_aside(signo, child);
    if (ours || (now.sa_handler == table.before[signo].sa_handler && called_by_kernel(&now)))
        send_again(signo, info);
    errno = saved;
}

/* A signal handler: only atomics, bare system calls and sigaction; errno stays. */
static void count_signal(int signo, siginfo_t *info, void *context) {
    bool child = table.pid != os_getpid();
    if (child || !count_in(signo)) {
        pass_back(signo, info, child);
        return;
    }
    add_seq(&changes, 1);
    os_futex_wake(&changes, 1);
}

/* table.lock held. Offers what was counted to all watchers. next: OPEN, or 0: counting ends. */
static void deliver(int signo, uint32_t next) {
    for (uint32_t n = xchg_acq(&counts[signo], next) & ~OPEN; n > 0; n--)
        for (SignalWatch *w = table.watches[signo]; w != NULL; w = w->next)
            gort_chan_try_send(w->ch, &signo);
}

static void signal_main(void) {
    for (;;) {
        uint32_t seen = load_acq(&changes);
        house_lock(&table.lock);
        for (int signo = 1; signo < SIGNALS; signo++)
            if ((load_rlx(&counts[signo]) & ~OPEN) != 0) deliver(signo, OPEN);
        house_unlock(&table.lock);
        os_futex_wait(&changes, seen, GORT_FOREVER);
    }
}

/* A channel watches: installs our handler where it does not stand. table.lock held; a section. */
static NOINLINE int hook_in(int signo) {
    int saved = errno;
    bool again = load_rlx(&counts[signo]) & OPEN;
    struct sigaction now;
    if (!again) store_rlx(&counts[signo], OPEN); /* before a handler can run */
    bool stands = ours_stands(signo, &now);
    if (again && stands) return 0;
    /* where it stands before the first watch (step_aside), `before` is still right */
    int r = install_ours(signo, stands ? NULL : &table.before[signo]);
    errno = saved; /* a number that libc keeps for itself */
    if (r != 0 && !again) store_rlx(&counts[signo], 0);
    return r == 0 ? 0 : -EINVAL;
}

static SignalWatch **watch_find(int signo, gort_chan *ch) {
    SignalWatch **at = &table.watches[signo];
    while (*at != NULL && (*at)->ch != ch) at = &(*at)->next;
    return at;
}

static int start_thread(void) {
    return table.pid == os_getpid() ? 0 : own_thread_start(signal_main, &table.pid);
}

int signal_resume(void) { return load_rlx(&sched.signal_channels) ? start_thread() : 0; }

/* table.lock held. Sees to it that there is a spare watch. */
static bool watch_spare(void) {
    if (table.spare != NULL) return true;
    SignalWatch *w = quiet_alloc(sizeof *w);
    if (w == NULL) return false;
    w->next = NULL;
    table.spare = w;
    return true;
}

/* table.lock held, both, and a section: the end of a runtime stops no goroutine half-way. */
static void channel_watches(SignalWatch **at, gort_chan *ch) {
    SignalWatch *w = table.spare;
    table.spare = w->next;
    *w = (SignalWatch){.ch = ch};
    *at = w;
    gort_chan_retain(ch);
    add_rlx(&sched.signal_channels, 1);
}
static void channel_leaves(SignalWatch **at) {
    SignalWatch *w = *at;
    *at = w->next;
    w->next = table.spare;
    table.spare = w;
    sub_rlx(&sched.signal_channels, 1);
}

/* table.lock held. */
static int watch(gort_chan *ch, int signo) {
    SignalWatch **at = watch_find(signo, ch);
    int r = start_thread();
    if (r < 0) return r;
    if (*at == NULL && !watch_spare()) return -ENOMEM; /* else the channel watches already */
    M *m = enter();
    r = hook_in(signo);
    if (r == 0 && *at == NULL) channel_watches(at, ch);
    leave(m);
    return r;
}

/* Not a fault: a handler that only counts would return to the faulting instruction for ever. */
static bool may_watch(int signo) {
    bool fault = signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL;
    return signo > 0 && signo < SIGNALS && signo != SIGKILL && signo != SIGSTOP &&
           signo != SIGURG && !fault && signo != settings.preempt_signal;
}

EXPORT int gort_signal_notify(gort_chan *ints, int signo) {
    if (!runtime_running()) return -ENOTCONN;
    if (ints == NULL || ints->elem_size != sizeof(int) || !may_watch(signo)) return -EINVAL;
    house_lock(&table.lock);
    int r = watch(ints, signo);
    house_unlock(&table.lock);
    return r;
}

/* Takes ch off one signal. True: it was on. table.lock held. */
static bool unwatch(gort_chan *ch, int signo) {
    SignalWatch **at = watch_find(signo, ch), *w = *at;
    struct sigaction now;
    if (w == NULL) return false;
    M *m = enter();
    bool last = table.watches[signo] == w && w->next == NULL;
    if (last && ours_stands(signo, &now)) sigaction_at_once(signo, &table.before[signo], NULL);
    deliver(signo, last ? 0 : OPEN); /* w is still there: see the essay */
    channel_leaves(at);
    leave(m);
    return true;
}

EXPORT int gort_signal_stop(gort_chan *ints) {
    /* also after the runtime has ended: the signal must be given back */
    if (in_forked_child()) return -ENOTCONN;
    if (ints == NULL) return -EINVAL;
    int n = 0;
    house_lock(&table.lock);
    for (int signo = 1; signo < SIGNALS; signo++) n += unwatch(ints, signo);
    house_unlock(&table.lock);
    for (; n > 0; n--) gort_chan_release(ints); /* may be the last */
    return 0;
}
