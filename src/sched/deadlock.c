/*
 * Deadlock: every goroutine is blocked and nothing can wake one.
 *
 * The monitor looks when all Ps are idle. Whatever could still wake a goroutine is counted at one
 * of these places until after it has arrived at the next. So a moment in which all of them are
 * empty, seen under sched.lock, is no gap between two:
 *
 *   runnable        the global queue, the local queues, the maker's list, the lists of preferred.c
 *   in the kernel   sched.in_syscall, sched.taken: down only once the G has a P or is queued
 *   descriptors     sched.poll_waiters: down only once its Gs are ready
 *   timers          heaps: a timer leaves one only to run, on an M that holds a P
 *   signals         sched.signal_channels
 *   plain threads   none that has called in is there (M.outsider); all threads are ours, but for
 *                   gort_main's caller
 *   left behind     no thread of an earlier runtime is left: its function may do all that a plain
 *                   thread does, and the counts above began anew with this runtime
 *
 * The monitor looks twice, and the number of switches must not have moved in between.
 *
 * Where the program's threads are goroutines (gort-run), a signal handler of its own may do the
 * waking: by sem_post, or by leaving. Then there is no deadlock. In a simulation, which is not to
 * be sent signals, only a handler of what the program's timers and children send counts.
 *
 * Afterwards the monitor may sleep deeply only if it found something that LASTS: what ends that is
 * an M that takes a P, or sysmon_uncount(), and makes the monitor look again. What only MOVES (a
 * searcher without a P, a queued G, a P in flight) may end without: the monitor looks by itself.
 */
#include "sched/deadlock.h"
#include "base/upstairs.h"
#include "sched/body.h"
#include "sched/describe.h"
#include "sched/g.h"
#include "sched/sim.h"
#include "unwind/symbols.h"
#include "base/fatal.h"
#include "sched/globalq.h"
#include "sched/threadmaker.h"
#include "base/print.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "os/linux/uring.h"
#include "base/warn.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

uint64_t p_switches(void) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < MAX_PROCS && sched.ps[i]; i++) n += load_rlx(&sched.ps[i]->n.switches);
    return n;
}

enum { NOTHING, MOVES, LASTS };

static bool armed(void) { return timers_first() < NEVER; }

static bool queued(void) {
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++)
        if (!runq_empty(sched.ps[i])) return true;
    return global_count() != 0;
}

bool outsider_there(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) /* pairs with m_record */
        if (load_acq(&m->alive) && load_acq(&m->outsider)) return true;
    return false;
}

/* Looks in the order of the list: a G that moves on is seen at its old place or its new one. */
static int what_can_wake(void) {
    bool lasts = outsider_there(); /* what one that has gone did is seen below */
    lock(&sched.lock, RANK_SCHED);
    bool moves = !sched.running || load_rlx(&sched.npidle) != load_rlx(&sched.procs) ||
                 load_rlx(&sched.stop_waiting) || global_count() != 0 || maker_has_pending();
    lasts |= load_acq(&sched.in_syscall) != 0;
    moves |= load_acq(&sched.taken) != 0 || load_acq(&sched.soft_waiting) != 0;
    lasts |= load_acq(&sched.poll_waiters) != 0 || load_rlx(&sched.signal_channels) != 0;
    moves |= load_rlx(&sched.spinning) != 0;
    lasts |= armed() || upstairs.clock_armed();
    moves |= queued();
    unlock(&sched.lock);
    return lasts ? LASTS : moves ? MOVES : NOTHING;
}

/* A thread of an earlier epoch has not ended. Nobody tells the monitor when it does. */
static bool somebody_left_behind(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) /* pairs with thread_begin */
        if (load_acq(&m->alive) && !m->plain && m->epoch != load_rlx(&sched.epoch)) return true;
    return false;
}

static bool only_our_threads(void) {
    int all = os_thread_count(), workers = 0;
    int ours = (int)load_rlx(&sched.threads) + 1; /* the caller of gort_main */
    if (collect_on) ours += upstairs.collect_threads();
    if (tsan_on()) ours++;                                   /* its background thread */
    if (all > ours && uring_on()) workers = os_io_workers(); /* the kernel keeps the last of them */
    if (all < 0 || workers < 0)
        warn_once(WARN_DEADLOCK,
                  "all goroutines are asleep, perhaps for ever: without %s the program's other "
                  "threads are not known, and no deadlock is reported",
                  all < 0 ? "/proc" : "a descriptor");
    return all >= 0 && all <= ours + workers;
}

/* By what a thread does itself, or libc's own (32, 33). */
static bool comes_from_inside(int signo) {
    switch (signo) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
    case SIGPIPE: return true;
    default: return signo == 32 || signo == 33;
    }
}

static bool counts_in_simulation(int signo) {
    return signo == SIGALRM || signo == SIGVTALRM || signo == SIGPROF || signo == SIGCHLD ||
           signo > 33;
}

static bool has_handler(int signo) {
    struct sigaction now;
    if (sigaction(signo, NULL, &now) < 0) return false; /* as the hook shows it */
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return false;
    return module_of((uintptr_t)now.sa_handler) != module_of((uintptr_t)has_handler);
}

static bool handler_may_wake(void) {
    if (!body_leads) return false;
    for (int signo = 1; signo < NSIG; signo++)
        if (!comes_from_inside(signo) && (!sim_on || counts_in_simulation(signo)) &&
            has_handler(signo))
            return true;
    return false;
}

static void print_thread(const char *before, G *gp) {
    char name[32];
    g_name(gp, name);
    print_fd(2, "%sgoroutine %lu", before, gp->id);
    Named entry = symbol_of(g_entry(gp));
    if (name[0]) print_fd(2, " \"%s\"", name);
    else if (entry.name) print_fd(2, " (%s)", entry.name);
}

static void print_holder(G *gp, void *arg) {
    int *tid = arg;
    if (gp->id == 0 || load_rlx(&gp->status) == G_DEAD || !has_body(gp) || body_tid(gp) != *tid)
        return;
    print_thread(", which is held by ", gp);
    *tid = 0;
}

/* All wait: nothing moves. */
static void print_wait(G *gp, void *arg) {
    const void *mutex;
    int holder;
    if (gp->id == 0 || load_rlx(&gp->status) != G_WAITING || gp->reason != WAIT_MUTEX ||
        upstairs.mutex_of == NULL || (mutex = upstairs.mutex_of(gp, &holder)) == NULL)
        return;
    print_thread("", gp);
    print_fd(2, " waits for mutex %p", mutex);
    each_g(print_holder, &holder);
    if (holder >= BODY_TIDS) print_fd(2, ", whose holder has ended");
    print_fd(2, "\n");
}

static NORETURN void report(void) {
    /* another thread reports already, and ends the process */
    while (!first_to_speak()) os_nap(GORT_SEC);
    if (load_rlx(&sched.main_exited) && gort_count() == 0)
        print_fd(2, "gort: fatal: no goroutines (main called gort_exit) - deadlock!\n");
    else
        print_fd(2, "gort: fatal: all %s are asleep - deadlock!\n",
                 body_leads ? "threads" : "goroutines");
    each_g(print_wait, NULL);
    print_fd(2, "\n");
    if (upstairs.last_words) upstairs.last_words(0);
    if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout); /* all are asleep: nobody is inside */
    _exit(2);
}

bool dead_check(void) {
    uint64_t switches = p_switches();
    int what = what_can_wake();
    if (what != NOTHING) return what == MOVES;
    if (somebody_left_behind() || handler_may_wake() || !only_our_threads()) return true;
    os_nap(100 * GORT_US);
    if (what_can_wake() != NOTHING || somebody_left_behind() || !only_our_threads() ||
        p_switches() != switches)
        return true;
    report();
}
