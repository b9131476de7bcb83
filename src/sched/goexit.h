/*
 * Exit hooks: what has to happen when a function of the program that a call of the library runs (a
 * wait group's, a group's, a once's, a blocking call's) does not return. They are a chain on the
 * goroutine's stack, the newest first. A function ends without returning in three ways:
 *
 *   gort_exit     runs all hooks.
 *   unwinding     by a C++ exception, or pthread_exit on a plain thread: call_guarded() runs the
 *                 function in a frame whose personality routine (exception.c) pops the newest hook
 *                 and calls it. So a guarded call's hook is pushed right before the call and popped
 *                 right behind it. (A wait group's and a group's functions are the outermost of
 *                 their goroutine: an exception there ends the process.)
 *   the runtime   has ended, and the goroutine never runs again: the end calls `abandon` of each
 *                 hook (undo_work, init.c). Work of the library that takes several sections has a
 *                 hook that only the end calls: the canceller of a tree of contexts (ctx.c).
 *
 * A hook is pushed in the section that makes it necessary, and popped in the section that does its
 * work. A goroutine is stopped for good between two sections only: so the end finds the hook if and
 * only if its work is still to be done. The end leaves alone what was pushed inside an announced
 * call (M.announced), which may still finish.
 *
 * longjmp drops frames and leaves the hooks in them in the chain. So a hook is checked before it is
 * used: it stands above the sp of the checker, where both are on the goroutine's own stack; its
 * seal is right (later frames would have overwritten it); it is the newest when it is popped; and
 * the chain is empty when the goroutine or the thread ends. A hook that fails is fatal: a once
 * would never be done, and the next hook would be read from a dead frame.
 */
#ifndef GOEXIT_H
#define GOEXIT_H

#include "runtime.h"
#include "mem/stack.h"

typedef struct ExitHook {
    struct ExitHook *next;
    void (*fn)(struct ExitHook *h); /* pops h and does its work. Outside of a section */
    /* the runtime has ended; NULL: nothing to do. By the end's thread, in a section */
    void (*abandon)(struct ExitHook *h);
    void *object;
    uintptr_t seal; /* exit_hook_seal, while h is in the chain */
} ExitHook;

NORETURN void exit_hook_jumped(void); /* fatal: a function was left by longjmp */

INLINE uintptr_t exit_hook_seal(const ExitHook *h) {
    uintptr_t words[] = {(uintptr_t)h, (uintptr_t)h->next, (uintptr_t)h->fn, (uintptr_t)h->abandon,
                         (uintptr_t)h->object};
    uintptr_t seal = 0x9E3779B97F4A7C15;
    for (int i = 0; i < 5; i++) seal = (seal ^ words[i]) * 0x100000001B3;
    return seal;
}

/* sp: of the calling function, which runs on gp; NULL: unknown, and only the seal is checked. */
INLINE void exit_hook_check(G *gp, const ExitHook *h, const void *sp) {
    const char *lo = gp->stack ? gp->stack->lo : NULL, *hi = (const char *)gp->stack;
    const char *at = (const char *)h, *now = sp;
    bool own = at >= lo && at < hi && now >= lo && now < hi;
    if ((own && at < now) || h->seal != exit_hook_seal(h)) exit_hook_jumped();
}
#define exit_hook_alive(gp, h) exit_hook_check((gp), (h), __builtin_frame_address(0))

/* In a section of gp's own thread; a plain thread's pseudo-G has a chain, too. */
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

/* Is gp inside the function that this hook guards? */
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

/* Unwinding began in a handler that has interrupted waits: their hooks, which have no function, are
 * the newest. What they hold is given back as by the end of a runtime. Outside of a section. */
void exit_hooks_unwound(G *gp);

/* The hook's thread-specific values of a goroutine end before its waiters hear of its end. Outside
 * of a section; destructors run, and may block. */
extern void (*values_end)(void);          /* libgort-hook.so's; never called without it */
extern void (*values_lost)(void *values); /* likewise: no destructors run */
INLINE void values_over(G *gp) {
    if (unlikely(gp->stack->values != NULL)) values_end();
}

/* fn(arg), with the newest hook as its guard. */
#define call_guarded(fn, arg) arch_call_guarded((fn), (arg))

/* Functions of goroutines that call the program's function: their argument begins with two words,
 * the object and that function. Dumps and traces show the program's function (g_entry). */
void wg_member_run(void *arg);
void group_member_run(void *arg);
void ctx_after_run(void *arg);
/* Counts the goroutine with this argument as ended: it never runs again. By the end's thread. */
void wg_member_abandon(void *arg);
void group_member_abandon(void *arg);
void ctx_after_abandon(void *arg);

#endif
