/*
 * The program's signal handlers run on the alternate stack.
 *
 * On the stack of the goroutine that it has interrupted, a handler that waits would park with it,
 * and might return on another thread. But the kernel keeps the thread's alternate stack and signal
 * mask in the handler's frame, and gives them to the thread that returns from it: two threads would
 * share one alternate stack, and the first would keep the handler's mask for ever. On the alternate
 * stack nothing parks (may_park): a handler waits in the kernel, and returns on its own thread.
 *
 * Threads without an alternate stack do not notice, and the program does not see the added flag. A
 * child of vfork has the parent's memory and handlers of its own: nothing is noted there.
 */
#include "hook/hook_internal.h"

/* atomic: signals, bit n - 1, whose handler the program installed without SA_ONSTACK */
static uint64_t onstack_added;

static bool is_handler(const struct sigaction *act) {
    return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

HOOK int sigaction(int signo, const struct sigaction *restrict act,
                   struct sigaction *restrict old) {
    struct sigaction with;
    bool notes = act && core && !vforked() && !core->in_sharing_child();
    bool adds = notes && is_handler(act) && !(act->sa_flags & SA_ONSTACK);
    if (adds) {
        with = *act;
        with.sa_flags |= SA_ONSTACK;
    }
    int r = libc(sigaction)(signo, adds ? &with : act, old);
    if (r < 0) return r;
    uint64_t bit = (uint64_t)1 << ((signo - 1) & 63), before = load_rlx(&onstack_added);
    if (notes) before = adds ? or_seq(&onstack_added, bit) : and_seq(&onstack_added, ~bit);
    if (old && (before & bit) && is_handler(old)) old->sa_flags &= ~SA_ONSTACK;
    return r;
}

/* libc has installed it, with the flags that siginterrupt(3) and the function's name imply. */
static sighandler_t handler_installed(int signo, sighandler_t handler, sighandler_t old) {
    struct sigaction now;
    if (old != SIG_ERR && core && libc(sigaction)(signo, NULL, &now) == 0 &&
        now.sa_handler == handler)
        sigaction(signo, &now, NULL);
    return old;
}

HOOK sighandler_t signal(int signo, sighandler_t handler) {
    return handler_installed(signo, handler, libc(signal)(signo, handler));
}
HOOK sighandler_t __sysv_signal(int signo, sighandler_t handler) {
    return handler_installed(signo, handler, libc(__sysv_signal)(signo, handler));
}
HOOK sighandler_t sigset(int signo, sighandler_t handler) {
    return handler_installed(signo, handler, libc(sigset)(signo, handler));
}
/* Other names of the first two. */
HOOK __typeof__(signal) ssignal __attribute__((alias("signal")));
HOOK __typeof__(signal) bsd_signal __THROW __attribute__((alias("signal")));
HOOK __typeof__(signal) sysv_signal __attribute__((alias("__sysv_signal")));

void handlers_adopt(void) {
    struct sigaction now;
    for (int signo = 1; signo < NSIG; signo++)
        if (libc(sigaction)(signo, NULL, &now) == 0 && is_handler(&now))
            sigaction(signo, &now, NULL);
}
