/*
 * The program's signal handlers run on the alternate stack.
 *
 * On the stack of the goroutine that it has interrupted, a handler that waits would park with it,
 * and might return on another thread. But the kernel keeps the thread's alternate stack and signal
 * mask in the handler's frame, and gives them to the thread that returns from it: two threads would
 * share one alternate stack, and the first would keep the handler's mask for ever. On the alternate
 * stack nothing parks (may_park): a handler waits in the kernel, and returns on its own thread.
 *
 * So a handler is installed with SA_ONSTACK. The flag is the process's, and a thread that runs no
 * goroutines may have an alternate stack too small for this handler. So where the program has not
 * asked for the flag, run_handler is installed in the handler's place. On such a thread it moves
 * the signal's frame to where the kernel would have put it, and goes on there: the alternate stack
 * is free again, for the next signal or after a longjmp. (On x86-64. Elsewhere, and in valgrind,
 * which makes frames of its own, the handler runs on the alternate stack there, too. In valgrind
 * the threads of a whole program, whose handlers wait and jump, do without it.)
 *
 * The program sees its own handlers and flags. A child of vfork has the parent's memory and
 * handlers of its own: nothing is noted there. The signal that preempts remains the runtime's, and
 * the program's handler for it is noted in preempt.c.
 */
#include "hook/hook_internal.h"

#include <ucontext.h>

/* atomic: what run_handler is to call for the signal, and WANTS_INFO */
static uintptr_t asked_for[NSIG];
#define WANTS_INFO ((uintptr_t)1 << 63) /* SA_SIGINFO was asked for */
static uint32_t asked_flags[NSIG];      /* atomic: the others, where the hook is the program's */

typedef void info_handler(int signo, siginfo_t *info, void *context);

/* ---- on threads without goroutines ----------------------------------------------------------- */

#ifdef __x86_64__
/* The kernel's. The floating-point state is above, where the context says. */
typedef struct SignalFrame {
    void *restorer;   /* the handler returns to it, and sigreturn finds the frame by the sp */
    long context[38]; /* libc's ucontext_t is longer */
    siginfo_t info;
} SignalFrame;
#define RED_ZONE 128
#define FP_ALIGN 64
#define FP_LEGACY 512
#define FP_NOTE 464 /* there: a magic number, and the size of it all */
#define FP_MAGIC 0x46505853u

static size_t fp_bytes(const uint32_t *fp) {
    return fp[FP_NOTE / 4] == FP_MAGIC ? fp[FP_NOTE / 4 + 1] : FP_LEGACY;
}

static void copy_bytes(void *to, const void *from, size_t n) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

/* top: of the stack; 0: the interrupted one. */
static SignalFrame *frame_copy(const siginfo_t *info, const ucontext_t *context, uintptr_t top) {
    uintptr_t sp = top ? top : (uintptr_t)context->uc_mcontext.gregs[REG_RSP] - RED_ZONE, fp = 0;
    const void *fp_was = context->uc_mcontext.fpregs;
    if (fp_was) {
        fp = sp = (sp - fp_bytes(fp_was)) & ~(uintptr_t)(FP_ALIGN - 1);
        copy_bytes((void *)fp, fp_was, fp_bytes(fp_was));
    }
    sp = ((sp - sizeof(SignalFrame)) & ~(uintptr_t)15) - 8; /* as after a call */
    SignalFrame *f = (SignalFrame *)sp;
    f->restorer = ((void *const *)context)[-1];
    copy_bytes(f->context, context, sizeof f->context);
    f->context[offsetof(ucontext_t, uc_mcontext.fpregs) / sizeof(long)] = (long)fp;
    f->info = *info;
    return f;
}

/* The kernel has changed to the alternate stack for this handler. */
static bool frame_is_away(const ucontext_t *context) {
    const stack_t *alt = &context->uc_stack;
    uintptr_t lo = (uintptr_t)alt->ss_sp, was = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
    return (uintptr_t)context - lo < alt->ss_size && was - lo > alt->ss_size && !core->in_valgrind;
}

/* By a jump: a call would leave a return address behind. */
INLINE NORETURN void frame_enter(SignalFrame *f, int signo, info_handler *handler) {
    __asm__ volatile("movq %0, %%rsp\n\tjmp *%1" ::"r"(f), "r"(handler), "D"((long)signo),
                     "S"(&f->info), "d"(&f->context)
                     : "memory");
    __builtin_unreachable();
}
INLINE void go_on_there(int signo, const siginfo_t *info, const void *context, uintptr_t top,
                        info_handler *handler) {
    if (frame_is_away(context)) frame_enter(frame_copy(info, context, top), signo, handler);
}
#else
INLINE void go_on_there(int signo, const siginfo_t *info, const void *context, uintptr_t top,
                        info_handler *handler) {}
#endif

static info_handler *handler_of(int signo) {
    return (info_handler *)(load_rlx(&asked_for[signo]) & ~WANTS_INFO);
}

/* A thread that is a goroutine, outside of the runtime. Where the frame can be moved to its stack,
 * this does not return. The runtime's own handler of faults stays where it is: the stack may be
 * full, and that is what it tells. */
void handler_enter(int signo, siginfo_t *info, void *context) {
    bool fault = signo == SIGSEGV || signo == SIGBUS;
    if (fault && is_cores((uintptr_t)handler_of(signo))) {
        signal_runs(signo, info, context);
        return;
    }
    bool apart = load_rlx(&asked_flags[signo]) & SA_ONSTACK;
    uintptr_t top = apart ? altstack_for(core->context_sp(context)) : 0;
    go_on_there(signo, info, context, top, signal_runs);
    signal_runs(signo, info, context);
}

static void run_handler(int signo, siginfo_t *info, void *context) {
    int how = unlikely(known.threads) ? signal_comes(signo, info, context) : SIGNAL_AS_EVER;
    if (how == SIGNAL_TAKEN) return;
    if (how == SIGNAL_HERE) handler_enter(signo, info, context);
    else {
        if (runner(sigaction) == NULL) go_on_there(signo, info, context, 0, handler_of(signo));
        handler_of(signo)(signo, info, context);
    }
}

bool handler_call(int signo, siginfo_t *info, void *context) {
    info_handler *handler = handler_of(signo);
    uint32_t flags = load_rlx(&asked_flags[signo]);
    if (flags & SA_RESETHAND) {
        struct sigaction none = {.sa_handler = SIG_DFL};
        libc(sigaction)(signo, &none, NULL);
    }
    handler(signo, info, context);
    return !(flags & SA_RESTART);
}

bool handler_breaks(int signo) {
    struct sigaction now = {0}; /* and stays so where libc keeps the signal for itself */
    core->sigaction(signo, NULL, &now);
    return now.sa_sigaction == run_handler && !(now.sa_flags & SA_RESTART);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static bool is_handler(const struct sigaction *act) {
    return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

/* Where the program's threads are goroutines, run_handler is in front of every handler, and does
 * itself what these say. */
#define WHOLE_FLAGS ((uint32_t)SA_ONSTACK | (uint32_t)SA_RESETHAND)

/* What the program has asked for, where the kernel has run_handler. */
static void as_asked(struct sigaction *act, uintptr_t asked, uint32_t flags) {
    if (act->sa_sigaction != run_handler) return;
    act->sa_handler = (sighandler_t)(asked & ~WANTS_INFO);
    act->sa_flags &= ~SA_ONSTACK;
    if (!(asked & WANTS_INFO)) act->sa_flags &= ~SA_SIGINFO;
    act->sa_flags |= (int)(flags & WHOLE_FLAGS);
}

static void mask_of_handler(struct sigaction *act) {
    act->sa_flags &= ~SA_RESETHAND;
    for (int signo = 1; signo < NSIG; signo++)
        if (core->keeps_signal(signo) || signo == SIGSEGV) sigdelset(&act->sa_mask, signo);
}

HOOK int sigaction(int signo, const struct sigaction *restrict act,
                   struct sigaction *restrict old) {
    struct sigaction with;
    bool valid = signo > 0 && signo < NSIG;
    if (core == NULL || !valid) return libc(sigaction)(signo, act, old);
    uintptr_t asked = load_rlx(&asked_for[signo]);
    uint32_t flags = load_rlx(&asked_flags[signo]);
    bool whole = known.threads;
    if (act && is_handler(act) && (whole || !(act->sa_flags & SA_ONSTACK)) && !vforked() &&
        !core->in_sharing_child()) {
        uintptr_t info = act->sa_flags & SA_SIGINFO ? WANTS_INFO : 0;
        with = *act;
        with.sa_flags |= SA_SIGINFO | (whole && core->in_valgrind ? 0 : SA_ONSTACK);
        with.sa_sigaction = run_handler;
        store_rlx(&asked_flags[signo], whole ? (uint32_t)act->sa_flags : 0);
        if (whole) mask_of_handler(&with);
        asked = xchg_seq(&asked_for[signo], (uintptr_t)act->sa_handler | info);
        act = &with;
    }
    int r = core->sigaction(signo, act, old);
    if (r == 0 && old) as_asked(old, asked, flags);
    return r;
}

/* libc has installed it, with the flags that siginterrupt(3) and the function's name imply. */
static sighandler_t handler_installed(int signo, sighandler_t handler, sighandler_t old) {
    struct sigaction now, before = {.sa_handler = old};
    if (old == SIG_ERR || core == NULL) return old;
    as_asked(&before, load_rlx(&asked_for[signo]), 0);
    if (libc(sigaction)(signo, NULL, &now) == 0 && now.sa_handler == handler)
        sigaction(signo, &now, NULL);
    return before.sa_handler;
}

/* For the signal that preempts: by sigaction, which leaves the runtime's handler where it is. */
static bool keeps(int signo) { return core != NULL && core->keeps_signal(signo); }
static sighandler_t note_handler(int signo, sighandler_t handler, int flags) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
    if (handler == SIG_ERR) {
        set_errno(EINVAL);
        return SIG_ERR;
    }
    return sigaction(signo, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

HOOK sighandler_t signal(int signo, sighandler_t handler) {
    if (keeps(signo)) return note_handler(signo, handler, SA_RESTART);
    return handler_installed(signo, handler, libc(signal)(signo, handler));
}
HOOK sighandler_t __sysv_signal(int signo, sighandler_t handler) {
    if (keeps(signo)) return note_handler(signo, handler, SA_RESETHAND | SA_NODEFER);
    return handler_installed(signo, handler, libc(__sysv_signal)(signo, handler));
}
/* It also blocks the signal (SIG_HOLD) or unblocks it. */
HOOK sighandler_t sigset(int signo, sighandler_t handler) {
    if ((keeps(signo) || known.threads) && signo > 0 && signo < NSIG) {
        sigset_t one, was;
        sigemptyset(&one);
        sigaddset(&one, signo);
        struct sigaction old;
        if (handler != SIG_HOLD) old.sa_handler = note_handler(signo, handler, 0);
        else if (sigaction(signo, NULL, &old) != 0) return SIG_ERR;
        if (old.sa_handler == SIG_ERR) return SIG_ERR;
        pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &was);
        return sigismember(&was, signo) ? SIG_HOLD : old.sa_handler;
    }
    return handler_installed(signo, handler, libc(sigset)(signo, handler));
}
/* libc changes the flag of run_handler, and remembers it for signal(). */
HOOK int siginterrupt(int signo, int interrupts) {
    struct sigaction act;
    int r = libc(siginterrupt)(signo, interrupts);
    if (r != 0 || core == NULL || sigaction(signo, NULL, &act) != 0 || !is_handler(&act)) return r;
    act.sa_flags = interrupts ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
    return sigaction(signo, &act, NULL);
}
/* Other names of the first two. */
HOOK __typeof__(signal) ssignal __attribute__((alias("signal")));
HOOK __typeof__(signal) bsd_signal __THROW __attribute__((alias("signal")));
HOOK __typeof__(signal) sysv_signal __attribute__((alias("__sysv_signal")));

/* One that is there already, be it behind the runtime's for the signal that preempts; one that
 * run_handler is in front of keeps its flags. */
static void handler_adopt(int signo) {
    struct sigaction now;
    if (core->sigaction(signo, NULL, &now) != 0 || !is_handler(&now)) return;
    if (now.sa_sigaction == run_handler) as_asked(&now, load_rlx(&asked_for[signo]), 0);
    sigaction(signo, &now, NULL);
}

/* Again when the program's threads become goroutines. */
void handlers_adopt(void) {
    core->use_sigaction(libc(sigaction));
    for (int signo = 1; signo < NSIG; signo++) handler_adopt(signo);
}
