/*
 * The program's signal handlers on the alternate stack.
 *
 * Without SA_ONSTACK a handler runs on the stack of the code it interrupts. The kernel's frame
 * alone takes up to 3.3 KB: on a compact stack of 1.5 KB it would overwrite the neighbours. So in a
 * program with libgort_split.a every handler gets that flag. Threads of the runtime have an
 * alternate stack of 64 KB each; on other threads the flag does nothing.
 *
 * sigaction and signal here are found before libc's. Handlers installed another way before
 * gort_main get the flag at its start (split_slow.c).
 */
#include <signal.h>
#include <stddef.h>

/* libc's own name for sigaction */
int __sigaction(int signo, const struct sigaction *act, struct sigaction *old);

int sigaction(int signo, const struct sigaction *act, struct sigaction *old) {
    struct sigaction with;
    if (act == NULL) return __sigaction(signo, NULL, old);
    with = *act;
    if (with.sa_handler != SIG_DFL && with.sa_handler != SIG_IGN) with.sa_flags |= SA_ONSTACK;
    return __sigaction(signo, &with, old);
}

typedef void handler_fn(int);

handler_fn *signal(int signo, handler_fn *handler) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    return sigaction(signo, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}
