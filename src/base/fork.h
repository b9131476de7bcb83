/* Is this still the process that started the runtime? fork.c. */
#ifndef FORK_H
#define FORK_H

#include "runtime.h"

/* A child made while a runtime ran has none: public calls say so first and touch nothing. */
#ifdef __aarch64__
#define PAGE_LARGEST 65536
#else
#define PAGE_LARGEST 4096
#endif
extern struct Process {
    bool same;   /* false: perhaps in a child. In a page apart; one thread runs when it changes */
    bool leaves; /* a child of _Fork begins: nothing goes back to malloc, whose lock may be held */
} ALIGNED(PAGE_LARGEST) process;
NOINLINE bool forked_slow(void);
INLINE bool in_forked_child(void) { return unlikely(!process.same) && forked_slow(); }
void fork_watch(void);    /* once, at load */
void fork_begin(void);    /* when a runtime begins */
void fork_renumber(void); /* the calling thread may have another number than in the parent */
NOINLINE bool in_any_child(void); /* of any kind, on any thread. A system call */
/* around a vfork, by the hook; the child has its maker's thread-locals */
void vfork_begin(void);
void vfork_end(void);
extern __thread uint32_t tls_vforks;
NORETURN void child_ends(const char *why); /* a line, and out */
NORETURN void child_exits(void);
/* Returns unless this is a child that shares the memory. m: asked for something by the monitor; or
 * NULL, where tls_vforks is not 0. */
NOINLINE void vfork_stops(M *m);

/* True while a runtime runs and this process is not a child of it. */
bool runtime_running(void);

#endif
