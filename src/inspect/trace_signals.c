/*
 * Signals that end the program: the trace is written first.
 *
 * While a trace with a file of its own or the flight recorder is on, every signal below whose
 * action is the default has a handler. It gives the signal back to the default, writes the file
 * (tracing_fatal: bare system calls and mmap only) and lets the signal end the process, with the
 * status that it would have had. So a second Ctrl-C ends a program that still writes at once. A
 * handler of the program stays, now and later; one that ends the program by exit(3) leaves a whole
 * file by atexit. SIGSEGV, SIGBUS and SIGQUIT are those of debug/faults.c.
 *
 * Process 1 of a container takes no signal by default, and none is to end it here.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "inspect/trace_session.h"
#include "base/fork.h"
#include "base/san.h"
#include "os/os.h"

#include <signal.h>

static const int guarded[] = {SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGXCPU, SIGINT, SIGTERM, SIGHUP};
enum { FIRST_FROM_OUTSIDE = 5 }; /* these come from other processes, at any moment */

static bool from_outside(int signo) {
    for (size_t i = FIRST_FROM_OUTSIDE; i < count_of(guarded); i++)
        if (guarded[i] == signo) return true;
    return false;
}

/* A signal that was sent (its code is 0 or less) does not come again by itself. */
static void on_last_signal(int signo, siginfo_t *info, void *context) {
    int saved = errno;
    bool child = in_any_child();
    sigaction_at_once(signo, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    if (!child && from_outside(signo) && tracing_writes_here()) {
        tracing_dies_by(signo);
    } else {
        if (!child) tracing_fatal();
        if (info->si_code <= 0) os_tgkill(os_gettid(), signo); /* not masked here: at once */
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
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | HANDLER_STACK};
    sa.sa_sigaction = on_last_signal;
    for (size_t i = 0; i < count_of(guarded); i++) {
        if (!action_is(guarded[i], false) || (os_getpid() == 1 && i >= FIRST_FROM_OUTSIDE))
            continue;
        sigfillset(&sa.sa_mask);
        sigdelset(&sa.sa_mask, guarded[i]);
        sigaction_at_once(guarded[i], &sa, NULL);
    }
}

/* What the program has installed meanwhile stays. */
void trace_signals_uninstall(void) {
    for (size_t i = 0; i < count_of(guarded); i++)
        if (action_is(guarded[i], true))
            sigaction_at_once(guarded[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

NORETURN void trace_signals_die(int signo) {
    for (;;) {
        sigaction_at_once(signo, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        os_tgkill(os_gettid(), signo);
        os_nap(GORT_MS); /* masked in this thread: another takes the one to the process */
        kill(os_getpid(), signo);
    }
}
