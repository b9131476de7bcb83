/*
 * Signals that end the program: the trace is written first.
 *
 * While a trace with a file of its own or the flight recorder is on, every signal that ends a
 * process by default, and whose action is the default, has a handler. It writes the file
 * (tracing_fatal: bare system calls and mmap only), gives the signal back to the default and lets
 * it end the process, with the status that it would have had. A second Ctrl-C ends a program that
 * still writes at once, with a word; but not one that comes within a second of the first:
 * timeout(1) and shells send a signal to the process and to its group, and mean it once. A clock, a
 * limit or a descriptor may send many: those do not end the writing. A handler of the program
 * stays, now and later; one that ends the program by exit(3) leaves a whole file by atexit.
 * SIGSEGV, SIGBUS, SIGQUIT and SIGPIPE are those of debug/faults.c.
 *
 * However a signal came (a terminal, a timer, a limit, a filter, another process), it does not come
 * again by itself, and the handler raises it. Only an instruction that faults does: it is made
 * again when the handler returns, and leaves a core with the fault in it.
 *
 * The kernel drops what is sent to process 1 of a container and has no handler. There only the
 * faults that repeat have one, and it drops the others: no signal could end that process after it.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "inspect/trace_session.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/print.h"
#include "base/san.h"
#include "os/os.h"

#include <signal.h>
#include <sys/syscall.h>

#include "arch.h"

#define SIGNAL_MOST 64
#define SIGNAL_BIT(signo) (1ULL << ((signo)-1))

/* They end no process, nobody can handle them, or they have handlers in debug/faults.c. */
static const uint64_t not_guarded =
    SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH) |
    SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU) | SIGNAL_BIT(SIGSTOP) |
    SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGQUIT) |
    SIGNAL_BIT(SIGPIPE);
/* An instruction that raises one of these, and is made again, raises it again. */
static const uint64_t faults = SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL);

static bool guards(int signo) {
    bool libcs = signo >= SIGSYS + 1 && signo < SIGRTMIN; /* cancellation, setuid, timers */
    if (libcs || signo == settings.preempt_signal) return false;
    return SIGNAL_BIT(signo) & (os_getpid() == 1 ? faults : ~not_guarded);
}

/* Of the interrupted instruction, and not sent in the guise of a fault. */
static bool fault_repeats(int signo, const siginfo_t *info, void *context) {
    return (SIGNAL_BIT(signo) & faults) && info->si_code > 0 &&
           (uintptr_t)info->si_addr == arch_context_pc(context);
}

/* From a clock, a limit, a descriptor: more of them may come while the file is written. */
static bool signal_comes_often(int signo, const siginfo_t *info) {
    const uint64_t clocks = SIGNAL_BIT(SIGALRM) | SIGNAL_BIT(SIGVTALRM) | SIGNAL_BIT(SIGPROF) |
                            SIGNAL_BIT(SIGXCPU) | SIGNAL_BIT(SIGIO);
    const uint64_t from_code = faults | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGTRAP);
    if (info->si_code == SI_KERNEL) return SIGNAL_BIT(signo) & clocks;
    if (info->si_code > 0) return !(SIGNAL_BIT(signo) & from_code);
    return info->si_code < SI_QUEUE && info->si_code != SI_TKILL;
}

static void signal_to_default(int signo) {
    sigaction_at_once(signo, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* From outside: to be sent once more by a person, being impatient, or a program that means it once.
 * The others are of the program's own making, and end it at once when they come again. */
static bool is_request(int signo, const siginfo_t *info) {
    const uint64_t own = faults | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGABRT);
    return !(SIGNAL_BIT(signo) & own) && !signal_comes_often(signo, info);
}

/* The first request with this signal ends the program when the file is whole, one that comes after
 * a second at once. */
typedef enum Ending { ENDING_FIRST, ENDING_SAME, ENDING_AGAIN } Ending;
static Ending ending_by(int signo) {
    static int64_t came[SIGNAL_MOST + 1]; /* atomic: when the first one came; 0: none */
    int64_t since = 0, now = os_now();
    if (cas_acq_rel(&came[signo], &since, now)) return ENDING_FIRST;
    return now - since < GORT_SEC ? ENDING_SAME : ENDING_AGAIN;
}

static void let_in(int signo) {
    uint64_t bit = SIGNAL_BIT(signo);
    os_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&bit, 0, sizeof bit, 0, 0);
}

/* This thread, now. */
static void end_by(int signo) {
    signal_to_default(signo);
    let_in(signo);
    os_tgkill(os_gettid(), signo);
}

/* Its own signal is masked here. A descriptor sends more of them than a handler could return from:
 * each would begin on top of the one before, until the stack is full. Others are let in once it is
 * known that this is the first. */
static void on_last_signal(int signo, siginfo_t *info, void *context) {
    int saved = errno;
    bool repeats = fault_repeats(signo, info, context), child = in_any_child();
    if (os_getpid() == 1 && !repeats) return;
    bool request = !child && is_request(signo, info);
    bool often = !child && signal_comes_often(signo, info);
    Ending which = request ? ending_by(signo) : ENDING_FIRST;
    if (which == ENDING_SAME) return;
    if (which == ENDING_AGAIN) {
        print_fd(2, "gort: a second signal: the trace is not whole\n");
        end_by(signo);
    }
    if (!request && !often) signal_to_default(signo);
    if (!often) let_in(signo);
    if (!child && tracing_writes_here()) {
        tracing_dies_by(signo); /* one that repeats does not wait */
    } else {
        if (!child) tracing_fatal();
        if (repeats) signal_to_default(signo);
        else end_by(signo);
    }
    errno = saved;
}

static bool action_is(int signo, bool ours) {
    struct sigaction now;
    if (sigaction_at_once(signo, NULL, &now) != 0) return false;
    if (now.sa_flags & SA_SIGINFO) return ours && now.sa_sigaction == on_last_signal;
    return !ours && now.sa_handler == SIG_DFL;
}

void trace_signals_install(void) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART | HANDLER_STACK};
    sa.sa_sigaction = on_last_signal;
    sigfillset(&sa.sa_mask);
    for (int signo = 1; signo <= SIGNAL_MOST; signo++) {
        if (!guards(signo) || !action_is(signo, false)) continue;
        sigaction_at_once(signo, &sa, NULL);
    }
}

/* What the program has installed meanwhile stays. */
void trace_signals_uninstall(void) {
    for (int signo = 1; signo <= SIGNAL_MOST; signo++)
        if (guards(signo) && action_is(signo, true)) signal_to_default(signo);
}

NORETURN void trace_signals_die(int signo) {
    for (;;) {
        signal_to_default(signo);
        os_tgkill(os_gettid(), signo);
        os_nap(GORT_MS); /* masked in this thread: another takes the one to the process */
        kill(os_getpid(), signo);
    }
}
