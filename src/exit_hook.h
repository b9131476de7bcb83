/*
 * What has to happen when a goroutine ends by gort_exit in the middle of a call of ours (a wait
 * group's function, a group's, a once's): a chain of hooks on its stack, the newest first.
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

/* The goroutine's own thread of control only. */
INLINE void exit_hook_push(G *gp, ExitHook *h) {
    h->next = gp->spare;
    gp->spare = h;
}
INLINE void exit_hook_pop(G *gp, ExitHook *h) { gp->spare = h->next; }

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

/* Functions of goroutines that call the program's: their argument begins with two words, the
 * object and the function. Dumps and traces show that one (g_entry in dump.c). */
void wg_member_run(void *arg);
void group_member_run(void *arg);

#endif
