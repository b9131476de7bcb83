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

typedef struct Handled {
    int signo;
    struct sigaction ours, before;
    bool changed; /* ours was installed */
} Handled;
enum { SEGV, BUS, QUIT, BROKEN_PIPE, HANDLED };
static Handled handled[HANDLED] = {
    {.signo = SIGSEGV}, {.signo = SIGBUS}, {.signo = SIGQUIT}, {.signo = SIGPIPE}};

static char *passed_on; /* atomic: the frame of on_segv that called the program's handler last */

static void default_action(int signo) {
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigaction(signo, &sa, NULL); /* returning repeats the fault */
}

static void end_inspection(void) {
    if (upstairs.inspection) upstairs.inspection->fatal();
}

/* What it does without a runtime. One that was sent (code <= 0) does not come again by itself. */
static void fall_back(int signo, siginfo_t *info, const struct sigaction *old) {
    bool was_sent = info->si_code <= 0;
    if (was_sent && old->sa_handler == SIG_IGN) return;
    default_action(signo);
    if (!in_any_child()) end_inspection();
    if (was_sent) os_tgkill(os_gettid(), signo); /* SA_NODEFER: at once */
}

/* The program's handler may pass the signal on to ours, which it has found there once. Then an
 * older frame of ours stands between this one and the signal's: no circle. */
static void fault_pass_on(int signo, siginfo_t *info, void *context, const struct sigaction *old) {
    char *older = load_rlx(&passed_on), *frame = __builtin_frame_address(0);
    bool circle = older > frame && older < (char *)context;
    if (circle || old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
        fall_back(signo, info, old);
        return;
    }
    store_rlx(&passed_on, frame);
    if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(signo, info, context);
    else old->sa_handler(signo);
    fence_compiler(); /* no tail call: the frame stays */
}

static void on_segv(int signo, siginfo_t *info, void *context) {
    M *m = getm();
    G *gp = m && !m->plain ? m->curg : NULL;
    Stack *s = gp ? gp->stack : NULL;
    uintptr_t at = (uintptr_t)info->si_addr, sp = arch_context_sp(context);
    if (s && info->si_code > 0 && (stack_guard_hit(s, at) || stack_jumped(s, sp))) {
        fatal_report("goroutine %lu: stack overflow (%lu KB, fault at 0x%lx, sp 0x%lx)", gp->id,
                     stack_span(s) >> 10, at, sp);
        default_action(signo);
        return;
    }
    fault_pass_on(signo, info, context, &handled[signo == SIGSEGV ? SEGV : BUS].before);
}

/* In a child the goroutines and the trace belong to its parent. */
static void on_quit(int signo) {
    if (in_any_child() || !runtime_running()) {
        default_action(signo);
        os_tgkill(os_gettid(), signo); /* arrives when this handler returns */
        return;
    }
    if (!first_to_speak()) return; /* a report, perhaps this thread's, is under way and ends us */
    print_fd(2, "SIGQUIT: quit\n\n");
    dump_all_from(2, 0);
    end_inspection();
    _exit(2);
}

static void on_pipe(int signo) {}

static int change(const Handled *h, const struct sigaction *sa, struct sigaction *old) {
    return h->signo == SIGQUIT ? sigaction_at_once(SIGQUIT, sa, old) : sigaction(h->signo, sa, old);
}

static bool stands(const Handled *h, struct sigaction *now) {
    return change(h, NULL, now) == 0 && now->sa_handler == h->ours.sa_handler;
}

static bool by_default(const struct sigaction *sa) {
    return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_DFL;
}

/* Where ours stands already, since the program has put back what it found there, `before` stays. */
void faults_install(void) {
    struct sigaction fault = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, now;
    fault.sa_sigaction = on_segv;
    handled[SEGV].ours = handled[BUS].ours = fault;
    handled[QUIT].ours.sa_handler = on_quit;
    sigfillset(&handled[QUIT].ours.sa_mask);
    handled[BROKEN_PIPE].ours.sa_handler = on_pipe;
    handled[QUIT].ours.sa_flags = handled[BROKEN_PIPE].ours.sa_flags = SA_ONSTACK | SA_RESTART;
    for (Handled *h = handled; h < handled + HANDLED; h++) {
        if (!stands(h, &now)) h->before = now;
        h->changed = h < handled + QUIT || by_default(&h->before);
        if (h->changed) change(h, &h->ours, NULL);
    }
}

/* What the program has installed meanwhile stays. */
void faults_uninstall(void) {
    struct sigaction now;
    for (Handled *h = handled; h < handled + HANDLED; h++)
        if (h->changed && stands(h, &now)) change(h, &h->before, NULL);
}
