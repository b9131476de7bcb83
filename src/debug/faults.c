/*
 * Signals that end a program, in words.
 *
 * SIGSEGV or SIGBUS in the guard of the running goroutine's stack, or with sp on another stack, or
 * beyond the limit of a thread's, is a stack overflow: one line, the dump, then the default action.
 * Any other, and SIGFPE, SIGILL and SIGABRT, is told (crash.c), and goes to the handler that the
 * program had when the runtime began, or to the default action: a core file, and the status, are
 * those of the signal.
 *
 * What is told, and when:
 *   - One thread tells at a time; another that crashes meanwhile waits (fatal.c). Before the
 *     default action the word is not given back: the others wait for the end.
 *   - A handler with SA_RESETHAND is called for one signal. The next ends the program, as it would
 *     have without a runtime: such a handler returns to the fault, to die of it.
 *   - A handler of the program's may mend the fault, or jump away: so it is told once per signal
 *     only, and the program goes on. What such a handler does itself, abort() say, belongs to what
 *     was told.
 *   - A crash in the report is the end, by the default action. abort() of fatal() is told already.
 *   - On a thread that is none of the runtime's only where the program has no handler.
 *   - A handler of a sanitizer's tells by itself. A child has no goroutines: nothing is told there.
 *   - GORT_DEBUG=crash=0: nothing is told.
 *
 *   - A whole program whose threads are goroutines (sched/body.c) gets what it handles as ever:
 *     a virtual machine's null references and its stack overflows are its own, and nothing is told.
 *
 * SIGQUIT prints every goroutine and exits with status 2, as in Go, unless the program has a
 * handler for it; a child process takes the default action instead.
 *
 * Unless the program handles SIGPIPE, a handler that does nothing is set: it ends with execve,
 * which SIG_IGN would not, so programs that we start still die of a broken pipe. For the same
 * reason SIGFPE, SIGILL and SIGABRT are left alone where they are ignored, and where the program
 * has a handler: its flags and its mask are its own.
 */
#include "debug/faults.h"
#include "debug/crash.h"
#include "debug/dump.h"
#include "base/fatal.h"
#include "base/print.h"
#include "base/san.h"
#include "base/upstairs.h"
#include "sched/body.h"
#include "sched/sched.h"
#include "mem/stack.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct Handled {
    int signo;
    struct sigaction ours, before;
    bool changed; /* ours was installed */
} Handled;
enum { SEGV, BUS, FPE, ILL, ABRT, QUIT, BROKEN_PIPE, HANDLED };
static Handled handled[HANDLED] = {{.signo = SIGSEGV}, {.signo = SIGBUS},  {.signo = SIGFPE},
                                   {.signo = SIGILL},  {.signo = SIGABRT}, {.signo = SIGQUIT},
                                   {.signo = SIGPIPE}};

static bool on; /* between faults_install and faults_uninstall */
/* atomic: */
static char *passed_on; /* the frame of call_handler() that called the program's handler last */
static int passed;      /* for this signal */
static uint32_t told;   /* bit n: signal n was told, and a handler of the program's followed */
static uint32_t spent;  /* bit n: the handler of signal n was for one signal, and has had it */

static void default_action(int signo) {
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigaction(signo, &sa, NULL); /* returning repeats the fault */
}

static void end_inspection(void) {
    if (upstairs.inspection) upstairs.inspection->fatal();
}

static bool by_default(const struct sigaction *sa) {
    return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_DFL;
}
static bool ignored(const struct sigaction *sa) {
    return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == SIG_IGN;
}
static const struct sigaction the_default = {.sa_handler = SIG_DFL};

/* What the kernel would have done at this moment, and does after the runtime. */
static const struct sigaction *action_now(const Handled *h) {
    return load_rlx(&spent) >> h->signo & 1 ? &the_default : &h->before;
}

/* The same for the one signal that is handled here. A child may have its parent's memory. */
static const struct sigaction *action_for(const Handled *h) {
    uint32_t bit = (uint32_t)1 << h->signo;
    if (!(h->before.sa_flags & SA_RESETHAND)) return &h->before;
    if (!in_any_child()) return or_seq(&spent, bit) & bit ? &the_default : &h->before;
    default_action(h->signo);
    return action_now(h);
}

static bool was_sent(const siginfo_t *info) { return info->si_code <= 0; }

/* The fault would not repeat where the report has mapped something at its address. So the signal is
 * sent, and waits until this handler returns: with the registers of the fault, as for a core. */
static void comes_again(int signo, siginfo_t *info) {
    uint64_t mask = (uint64_t)1 << (signo - 1);
    os_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, sizeof mask, 0, 0);
    os_sys(SYS_rt_tgsigqueueinfo, os_getpid(), os_gettid(), signo, (long)info, 0, 0);
}

/* What it does without a runtime. One that was sent does not come again by itself. The trace first:
 * the default action is for all threads, and another that crashes now would end the writer. If the
 * writer crashes it comes here again, and is not waited for. */
static void fall_back(int signo, siginfo_t *info, const struct sigaction *old) {
    if (was_sent(info) && ignored(old)) return;
    if (!in_any_child()) {
        steady_begin(); /* for good: those that wait for the end have the Ps */
        end_inspection();
    }
    default_action(signo);
    if (was_sent(info)) os_tgkill(os_gettid(), signo); /* SA_NODEFER: at once */
    else comes_again(signo, info);
}

/* The program's handler may pass the signal on to the one that it has replaced, on_fault(). Then an
 * older frame of call_handler() stands between this one and the signal's. Calling the program's
 * handler again would go round for ever. */
static bool passed_back(void *context) {
    char *older = load_rlx(&passed_on), *frame = __builtin_frame_address(0);
    return older > frame && older < (char *)context;
}

/* The interrupted code is the program's handler, which stands a few frames further out. */
static bool in_handler(void *context) {
    uintptr_t frame = (uintptr_t)load_rlx(&passed_on), sp = arch_context_sp(context);
    return frame > sp && frame - sp < (64 << 10);
}

static void call_handler(int signo, siginfo_t *info, void *context, const struct sigaction *old) {
    char *older = load_rlx(&passed_on);
    store_rlx(&passed, signo);
    store_rlx(&passed_on, (char *)__builtin_frame_address(0));
    if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(signo, info, context);
    else old->sa_handler(signo);
    store_rlx(&passed_on, older); /* and the frame stays: no tail call */
}

/* ---- crashes --------------------------------------------------------------------------------- */

/* None of the runtime's, with an alternate stack of its own: it may be small, and a handler that
 * jumps leaves what stands on it. There the program's handler is called, and nothing more. */
static bool foreign_thread(void) {
    M *m = getm();
    return m == NULL || m->plain;
}

/* As with the kernel, which blocks the signal meanwhile: the end. */
static bool handler_crashes(int signo, siginfo_t *info, void *context,
                            const struct sigaction *old) {
    return !foreign_thread() && !was_sent(info) && !(old->sa_flags & SA_NODEFER) &&
           load_rlx(&passed) == signo && in_handler(context);
}

static bool crash_is_told(int signo, siginfo_t *info, void *context, bool by_handler,
                          const struct sigaction *old) {
    uint32_t bit = (uint32_t)1 << signo;
    if (!on || !settings.crash || in_any_child()) return false;
    if (load_rlx(&told) != 0 && in_handler(context)) return false;
    if (!by_handler) return !(was_sent(info) && ignored(old));
    return !sanitizer_there() && !(or_seq(&told, bit) & bit);
}

/* False: it has crashed itself. */
static bool crash_tell(int signo, siginfo_t *info, void *context, bool by_handler) {
    M *m = steady_begin(); /* no preemption meanwhile, and none before the end */
    bool first = speak_begin();
    if (first) crash_report(signo, info, context, by_handler);
    if (first && by_handler) speak_end();
    if (by_handler) steady_end(m);
    return first || was_sent(info); /* fatal() has told, and calls abort */
}

/* In a program whose threads are goroutines: what is not there in a thread's own stack is beyond
 * the limit of main's, which the kernel maps as it grows, or a guard that was asked for. */
static bool beyond_limit(const G *gp, const siginfo_t *info, uintptr_t pc) {
    uintptr_t at = (uintptr_t)info->si_addr;
    return body_leads && has_body(gp) && info->si_signo == SIGSEGV && at != pc &&
           (info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR) &&
           at - (uintptr_t)gp->stack->lo < stack_span(gp->stack);
}

static bool fault_overflow(int signo, siginfo_t *info, void *context) {
    M *m = getm();
    G *gp = m && !m->plain ? m->curg : NULL;
    Stack *s = gp ? gp->stack : NULL;
    uintptr_t at = (uintptr_t)info->si_addr, sp = arch_context_sp(context);
    if (s == NULL || was_sent(info) || (signo != SIGSEGV && signo != SIGBUS)) return false;
    if (!stack_guard_hit(s, at) && !stack_jumped(s, sp) &&
        !beyond_limit(gp, info, arch_context_pc(context)))
        return false;
    fatal_report(arch_context_pc(context),
                 "goroutine %lu: stack overflow (%lu KB, fault at 0x%lx, sp 0x%lx): %s", gp->id,
                 stack_span(s) >> 10, at, sp, stack_advice(gp));
    default_action(signo);
    return true;
}

static const Handled *handled_for(int signo) {
    const Handled *h = handled;
    while (h->signo != signo) h++;
    return h;
}

static void on_fault(int signo, siginfo_t *info, void *context) {
    if (fault_overflow(signo, info, context)) return;
    const struct sigaction *old = action_for(handled_for(signo));
    bool back = passed_back(context) || handler_crashes(signo, info, context, old);
    bool by_handler = !back && !by_default(old) && !ignored(old);
    bool tells = !back && !(by_handler && foreign_thread()) &&
                 crash_is_told(signo, info, context, by_handler, old);
    if (tells && !crash_tell(signo, info, context, by_handler)) default_action(signo);
    else if (by_handler) call_handler(signo, info, context, old);
    else fall_back(signo, info, old);
}

/* ---- the others ------------------------------------------------------------------------------ */

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

/* Is h->ours to be there, instead of h->before? */
static bool wanted(const Handled *h, bool whole_program) {
    bool handler = !by_default(&h->before) && !ignored(&h->before);
    if (h <= handled + BUS) return !(handler && whole_program);
    return h == handled + QUIT ? !handler : by_default(&h->before);
}

/* Where h->ours stands already, since the program has put it back, h->before stays as it is. */
void faults_install(bool whole_program) {
    struct sigaction fault = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, now;
    fault.sa_sigaction = on_fault;
    for (Handled *h = handled; h <= handled + ABRT; h++) h->ours = fault;
    handled[QUIT].ours.sa_handler = on_quit;
    sigfillset(&handled[QUIT].ours.sa_mask);
    handled[BROKEN_PIPE].ours.sa_handler = on_pipe;
    handled[QUIT].ours.sa_flags = handled[BROKEN_PIPE].ours.sa_flags = SA_ONSTACK | SA_RESTART;
    for (Handled *h = handled; h < handled + HANDLED; h++) {
        struct sigaction earlier = h->before;
        if (!stands(h, &now)) {
            h->before = now;
            and_seq(&spent, ~((uint32_t)1 << h->signo));
        }
        h->changed = wanted(h, whole_program);
        /* a program that has replaced h->ours in an earlier runtime may still put it back */
        if (!h->changed) h->before = earlier;
        if (h->changed) change(h, &h->ours, NULL);
    }
    on = true;
}

/* What the program has installed meanwhile stays. */
void faults_uninstall(void) {
    struct sigaction now;
    on = false;
    for (Handled *h = handled; h < handled + HANDLED; h++)
        if (h->changed && stands(h, &now)) change(h, action_now(h), NULL);
}
