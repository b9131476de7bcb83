/*
 * What has to happen when a function of the program that a call of ours runs (a wait group's, a
 * group's, a once's, a blocking call's) does not return: a chain of hooks on the goroutine's stack,
 * the newest first.
 *
 * gort_exit runs them all. A C++ exception, and pthread_exit on a plain thread, unwind the stack:
 * call_guarded() runs the function in a frame whose personality routine (exception.c) takes the
 * newest hook off and calls it on the way. So a guarded call's hook is pushed right before it and
 * popped right behind it. (A wait group's and a group's functions are the outermost of their
 * goroutine: nothing can catch an exception there, and C++ ends the process.)
 *
 * And the goroutine may be stopped for good, since the runtime ends. Then `abandon` is called, by
 * the end, for each hook of the chain (undo_work, init.c). That is also how work of the library's
 * own that takes several sections is brought to its end: the canceller of a tree of contexts has a
 * hook that nobody else calls (ctx.c).
 *
 * A hook is pushed in the section that makes it necessary, and taken off in the section that does
 * what it is for. A goroutine is stopped for good between two sections only: so the end finds the
 * hook if and only if its work is still to be done. What the function of a blocking call pushes is
 * left alone: that function may finish, at any time (Stack.blocking).
 *
 * longjmp tells nobody: the frames are gone, and the hook in them stays in the chain. So before a
 * hook is used it has to show that it is alive. It stands above the sp of whoever asks, where both
 * are on the goroutine's own stack (not where that has grown by a segment, nor on a plain thread's
 * or the program's own); its seal is right, which it is not where other frames have been since; it
 * is the newest one when it is taken off; and there is none when the goroutine or the thread ends.
 * What fails is fatal: a once would never be done, and the next hook would point to nowhere.
 */
#ifndef EXIT_HOOK_H
#define EXIT_HOOK_H

#include "runtime.h"
#include "mem/stack.h"

typedef struct ExitHook {
    struct ExitHook *next;
    /* takes h off and does what it is for. Outside of a section */
    void (*fn)(struct ExitHook *h);
    /* the runtime has ended; NULL: there is nothing to be done. By the end's thread, in a section
     * */
    void (*abandon)(struct ExitHook *h);
    void *object;
    uintptr_t seal; /* exit_hook_seal, while it is in the chain */
} ExitHook;

NORETURN void exit_hook_jumped(void); /* fatal: a function was left by longjmp */

INLINE uintptr_t exit_hook_seal(const ExitHook *h) {
    uintptr_t words[] = {(uintptr_t)h, (uintptr_t)h->next, (uintptr_t)h->fn, (uintptr_t)h->abandon,
                         (uintptr_t)h->object};
    uintptr_t seal = 0x9E3779B97F4A7C15;
    for (int i = 0; i < 5; i++) seal = (seal ^ words[i]) * 0x100000001B3;
    return seal;
}

/* sp: of gp, or of the calling function, which runs on gp. */
INLINE void exit_hook_check(G *gp, const ExitHook *h, const void *sp) {
    const char *lo = gp->stack ? gp->stack->lo : NULL, *hi = (const char *)gp->stack;
    const char *at = (const char *)h, *now = sp;
    bool own = at >= lo && at < hi && now >= lo && now < hi;
    if ((own && at < now) || h->seal != exit_hook_seal(h)) exit_hook_jumped();
}
#define exit_hook_alive(gp, h) exit_hook_check((gp), (h), __builtin_frame_address(0))

/* In a section of the goroutine's own; a plain thread's pseudo-G has a chain, too. */
INLINE void exit_hook_push(G *gp, ExitHook *h) {
    if (gp->spare != NULL) exit_hook_alive(gp, gp->spare);
    h->next = gp->spare;
    h->seal = exit_hook_seal(h);
    gp->spare = h;
}
INLINE void exit_hook_pop(G *gp, ExitHook *h) {
    if (unlikely(gp->spare != h)) exit_hook_jumped();
    gp->spare = h->next;
    h->seal = 0;
}

/* True where the goroutine is inside the function of this hook. */
INLINE bool exit_hook_has(G *gp, void (*fn)(ExitHook *), void *object) {
    for (ExitHook *h = gp->spare; h; h = h->next) {
        exit_hook_alive(gp, h);
        if (h->fn == fn && h->object == object) return true;
    }
    return false;
}

/* gort_exit: outside of a section, on the goroutine's stack; hooks may block. */
INLINE void exit_hooks_run(G *gp) {
    while (gp->spare) {
        ExitHook *h = gp->spare;
        exit_hook_alive(gp, h);
        h->fn(h);
    }
}

/* What libraries keep for the goroutine ends before whoever waits for it hears of its end: as a
 * thread's does, before it is joined. Outside of a section; destructors run, and may block. */
extern void (*values_end)(void);          /* the hook's; not called without it */
extern void (*values_lost)(void *values); /* likewise: no destructors run */
INLINE void values_over(G *gp) {
    if (unlikely(gp->stack->values != NULL)) values_end();
}

/* fn(arg), with the newest hook as its guard. */
#define call_guarded(fn, arg) arch_call_guarded((fn), (arg))

/* Functions of goroutines that call the program's: their argument begins with two words, the
 * object and the function. Dumps and traces show that one (g_entry in dump.c). */
void wg_member_run(void *arg);
void group_member_run(void *arg);
/* The same argument, of a goroutine that will never run on, or has never run: it counts as ended.
 * By the end's thread. */
void wg_member_abandon(void *arg);
void group_member_abandon(void *arg);

#endif
