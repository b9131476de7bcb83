/*
 * What libgort-hook.so (src/hook/) needs of the core. Not for programs: the two are built together
 * and the hook refuses a core of another shape.
 */
#ifndef HOOK_H
#define HOOK_H

#include "sched.h"

typedef struct HookCore {
    size_t size, size_m, size_g; /* of this struct, M and G: the same on both sides */

    /* The one test: is this code of a goroutine, outside of the runtime, that may park? Its M, or NULL. */
    M *(*here)(void);
    /* The goroutine this thread runs, wherever it is; NULL: none. */
    G *(*current)(void);
    bool (*child)(void); /* a fork of a running runtime */
    uint32_t (*life)(void); /* the runtime that runs; 0: none. Its goroutines end with it */

    M *(*enter)(void);
    void (*leave)(M *m);
    void (*lock)(Lock *l); /* RANK_PRIM */
    void (*unlock)(Lock *l);
    M *(*park_until)(M *m, Lock *l, int reason, int64_t deadline, uint32_t ticket, bool *timed_out);
    void (*ready)(M *m, G *gp);

    /* here(): the current goroutine is to come back to this thread (soft.c), between the two. True:
     * it is this call that asked for it, and has to end it. Before any other call into gort. */
    bool (*stay_begin)(void);
    void (*stay_end)(void);

    /* An unannounced call may sleep in the kernel: the monitor takes the P. False where it cannot. */
    bool (*retakes)(void);
    const uint32_t *taken;  /* how many threads sleep so now */
    const uint32_t *looks;  /* how often the monitor has looked */

    /* Descriptors. forget: the number is another file from now on. known: closing it needs
     * gort_close. */
    void (*forget)(int fd);
    bool (*known)(int fd);
} HookCore;

const HookCore *gort_hook_core(void);

#endif
