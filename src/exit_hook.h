/*
 * What is to be done when a goroutine ends by gort_exit() in the middle of a function that somebody
 * waits for: a wait group's, a group's, a once's. Such a caller pushes a hook that lives in its
 * frame, calls the function, and pops it again. gort_exit() runs what is left, newest first, on
 * the goroutine's own stack, before the goroutine ends.
 *
 * The list hangs on the G (spare) and only its own goroutine touches it: no lock, no atomics.
 */
#ifndef EXIT_HOOK_H
#define EXIT_HOOK_H

#include "sched.h"

typedef struct ExitHook {
    struct ExitHook *next;
    void (*fn)(void *arg);
    void *arg;
} ExitHook;

INLINE void exit_hook_push(ExitHook *h, void (*fn)(void *), void *arg) {
    M *m = enter();
    G *gp = self(m);
    h->fn = fn;
    h->arg = arg;
    h->next = gp->spare;
    gp->spare = h;
    leave(m);
}

INLINE void exit_hook_pop(ExitHook *h) {
    M *m = enter();
    check(self(m)->spare == h);
    self(m)->spare = h->next;
    leave(m);
}

/* For gort_exit(): outside of a section, since hooks unlock and wake. */
INLINE void exit_hooks_run(G *gp) {
    ExitHook *h;
    while ((h = gp->spare) != NULL) {
        gp->spare = h->next;
        h->fn(h->arg);
    }
}

#endif
