/* Threads. See m.c. */
#ifndef M_H
#define M_H

#include "runtime.h"

#include <pthread.h>

M *m_record(void); /* a record for a new thread, or one that is adopted; NULL: no memory */
void m_record_free(M *m);
int m_spawn(M *m); /* the maker: starts m's thread. 0 or -errno */
/* A thread of the library's that begins with all signals blocked, counted in sched.threads. joined
 * NULL: it is detached, and counts itself out. stack 0: the system's size. 0 or -errno. */
int own_thread(pthread_t *joined, size_t stack, void *(*fn)(void *), void *arg);
#define ALT_STACK ((size_t)256 << 10)
bool on_alt_stack(M *m, void *at); /* `at` is on the stack that the runtime gave m for signals */
void *m_alt_end(M *m);             /* the end of that stack; NULL: there is none */
size_t m_tls_bytes(void);          /* of the variables of all modules, as far as known */
Handling *m_handling_here(void);   /* of the calling thread; NULL: a program without C++ */
/* The caller, a thread that the library has made, does not count as a plain thread. */
void m_is_ours(void);
void m_fork(bool before); /* forkgate.c */
/* m's thread is gone. One that ends in order says so itself, before it is gone. */
void m_count_out(M *m);
void m_forget_others(void); /* in a child, which has none of its parent's other threads */
void m_unadopt(void);       /* the calling plain thread has no record any more */
M *m_adopt_or_null(void);   /* as m_adopt (sched.h); NULL: no memory */

/* When a runtime starts: where plugins that are open keep a thread's exceptions. */
void m_find_globals(void);

#endif
