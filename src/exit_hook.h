/*
 * What has to happen when a function of the program that a call of ours runs (a wait group's, a group's, a once's, a
 * blocking call's) does not return: a chain of hooks on the goroutine's stack, the newest first.
 *
 * gort_exit runs them all. A C++ exception, and pthread_exit on a plain thread, unwind the stack: call_guarded()
 * runs the function in a frame whose personality routine (guard.c) takes the newest hook off and calls it on the
 * way. So a guarded call's hook is pushed right before it and popped right behind it. (A wait group's and a group's
 * functions are the outermost of their goroutine: nothing can catch an exception there, and C++ ends the process.)
 */
#ifndef EXIT_HOOK_H
#define EXIT_HOOK_H

#include "runtime.h"
#include "stack.h"

typedef struct ExitHook {
    struct ExitHook *next;
    void (*fn)(void *arg);
    void *arg;
} ExitHook;

/* The goroutine's own thread of control only; a plain thread's pseudo-G has a chain, too. */
INLINE void exit_hook_push(G *gp, ExitHook *h) {
    h->next = gp->spare;
    gp->spare = h;
}
INLINE void exit_hook_pop(G *gp, ExitHook *h) { gp->spare = h->next; }

/* True where the goroutine is inside the function of this hook. */
INLINE bool exit_hook_has(G *gp, void (*fn)(void *), void *arg) {
    for (ExitHook *h = gp->spare; h; h = h->next)
        if (h->fn == fn && h->arg == arg) return true;
    return false;
}

/* gort_exit: outside of a section, on the goroutine's stack; hooks may block. */
INLINE void exit_hooks_run(G *gp) {
    while (gp->spare) {
        ExitHook *h = gp->spare;
        gp->spare = h->next;
        h->fn(h->arg);
    }
}

/* What libraries keep for the goroutine ends before whoever waits for it hears of its end: as a thread's does, before it is
 * joined. Outside of a section; destructors run, and may block. */
extern void (*values_end)(void); /* the hook's; not called without it */
INLINE void values_over(G *gp) {
    if (unlikely(gp->stack->values != NULL)) values_end();
}

/* fn(arg), with the newest hook as its guard. */
#define call_guarded(fn, arg) arch_call_guarded((fn), (arg))

/* Functions of goroutines that call the program's: their argument begins with two words, the
 * object and the function. Dumps and traces show that one (g_entry in dump.c). */
void wg_member_run(void *arg);
void group_member_run(void *arg);

#endif
