/*
 * Is this still the process that started the runtime? See fork.c.
 */
#ifndef FORK_H
#define FORK_H

#include "runtime.h"

/* A child made while a runtime ran has none: public calls say so first and touch nothing
 * (fork.c). */
#ifdef __aarch64__
#define PAGE_LARGEST 65536
#else
#define PAGE_LARGEST 4096
#endif
extern struct Process {
    /* true; false: in a child, perhaps. Alone in its page; read plainly, it changes while one
     * thread runs */
    bool same;
} ALIGNED(PAGE_LARGEST) process;
NOINLINE bool forked_slow(void);
INLINE bool in_forked_child(void) { return unlikely(!process.same) && forked_slow(); }
void fork_watch(void);            /* when a runtime begins */
NOINLINE bool in_any_child(void); /* of whatever kind, on whatever thread. A system call */
/* around a vfork, by the hook; the child has the thread-locals of its maker */
void vfork_begin(void);
void vfork_end(void);
extern __thread uint32_t tls_vforks;
NORETURN void child_ends(const char *why); /* a line, and out */
NORETURN void child_exits(void);
/* m is asked for something, or NULL, not known yet, where tls_vforks is not 0: returns unless this
 * is a child that shares the memory */
NOINLINE void vfork_stops(M *m);

/* True while a runtime runs and this process is not a child of it. */
bool runtime_running(void);

#endif
