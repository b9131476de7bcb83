/*
 * Signals that end a program, in words.
 *
 * SIGSEGV or SIGBUS in the guard of the running goroutine's stack, or with sp on another stack, is
 * a stack overflow: one line, the dump, then the default action. If two threads fail at once, one
 * reports and the other waits for the end (fatal.c). Any other goes to the handler that the program
 * (or a sanitizer) had, or to the default action. SIGQUIT prints every goroutine and exits with
 * status 2, as in Go; a child process takes the default action instead.
 *
 * Unless the program handles SIGPIPE, a handler that does nothing is set: it ends with execve,
 * which SIG_IGN would not, so programs that we start still die of a broken pipe.
 */
#include "debug/faults.h"
#include "debug/dump.h"
#include "base/fatal.h"
#include "base/print.h"
#include "base/san.h"
#include "base/upstairs.h"
#include "sched/sched.h"
#include "mem/stack.h"

#include <signal.h>
#include <unistd.h>

static struct sigaction before_segv, before_bus, before_quit, before_pipe;
static bool pipe_changed, quit_changed;

static void default_action(int signo) {
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigaction(signo, &sa, NULL); /* returning repeats the fault */
}

static void end_inspection(void) {
    if (upstairs.inspection) upstairs.inspection->fatal();
}

static bool overflowed(Stack *s, uintptr_t at, uintptr_t sp) {
    return stack_guard_hit(s, at) || stack_jumped(s, sp);
}

static void on_segv(int signo, siginfo_t *info, void *context) {
    M *m = getm();
    G *gp = m && !m->plain ? m->curg : NULL;
    uintptr_t at = (uintptr_t)info->si_addr;
    if (gp && gp->stack && info->si_code > 0 &&
        overflowed(gp->stack, at, arch_context_sp(context))) {
        fatal_report("goroutine %lu: stack overflow (%lu KB, fault at 0x%lx, sp 0x%lx)",
                     (unsigned long)gp->id, (unsigned long)(stack_span(gp->stack) >> 10),
                     (unsigned long)at, (unsigned long)arch_context_sp(context));
        default_action(signo);
        return;
    }
    struct sigaction *old = signo == SIGSEGV ? &before_segv : &before_bus;
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signo, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signo);
    } else {
        default_action(signo);
        if (!in_any_child()) end_inspection();
    }
}

/* In a child the goroutines and the trace belong to its parent. */
static void on_quit(int signo) {
    if (in_any_child()) {
        default_action(signo);
        os_tgkill(os_gettid(), signo); /* arrives when this handler returns */
        return;
    }
    if (!first_to_speak()) return; /* a report, perhaps this thread's, is under way and ends us */
    print_fd(2, "SIGQUIT: quit\n\n");
    dump_all(2);
    end_inspection();
    _exit(2);
}

static void on_pipe(int signo) {}

static void set_quit(void) {
    struct sigaction sa = {.sa_handler = on_quit, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigfillset(&sa.sa_mask);
    sigaction_at_once(SIGQUIT, &sa, NULL);
}

void faults_install(void) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sa.sa_sigaction = on_segv;
    sigemptyset(&sa.sa_mask);
    sigaction(SIGSEGV, &sa, &before_segv);
    sigaction(SIGBUS, &sa, &before_bus);
    sigaction_at_once(SIGQUIT, NULL, &before_quit);
    quit_changed = !(before_quit.sa_flags & SA_SIGINFO) && before_quit.sa_handler == SIG_DFL;
    if (quit_changed) set_quit();
    sigaction(SIGPIPE, NULL, &before_pipe);
    pipe_changed = !(before_pipe.sa_flags & SA_SIGINFO) && before_pipe.sa_handler == SIG_DFL;
    if (pipe_changed) {
        struct sigaction nothing = {.sa_handler = on_pipe, .sa_flags = SA_ONSTACK | SA_RESTART};
        sigaction(SIGPIPE, &nothing, NULL);
    }
}

void faults_uninstall(void) {
    sigaction(SIGSEGV, &before_segv, NULL);
    sigaction(SIGBUS, &before_bus, NULL);
    if (quit_changed) sigaction_at_once(SIGQUIT, &before_quit, NULL);
    if (pipe_changed) sigaction(SIGPIPE, &before_pipe, NULL);
}
