/*
 * Threads. See m.c.
 */
#ifndef M_H
#define M_H

#include "runtime.h"

M *m_record(void); /* a record, from the maker or m_adopt; NULL: no memory */
void m_record_free(M *m);
int m_spawn(M *m); /* the maker: starts m's thread. 0 or -errno */
#define ALT_STACK ((size_t)256 << 10)
bool on_alt_stack(M *m, void *at); /* a signal handler runs here, on the runtime's stack for it */
void *m_alt_end(M *m);             /* the end of that stack; NULL: there is none */
/* a thread that the library has started with pthread_create: no plain thread of the program */
void m_is_ours(void);
M *m_adopt_or_null(void); /* as m_adopt (sched.h); NULL: no memory */
void m_prepare(void);     /* once per process: the key that ends plain threads' records */

#endif
