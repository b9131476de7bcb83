/* Injected faults: GORT_DEBUG=sysfault=... (sysfault.c). */
#ifndef SYSFAULT_H
#define SYSFAULT_H

#include "base/base.h"

#include <pthread.h>

extern bool sysfault_on; /* set and cleared by env_read() only: plain */

/* One value of sysfault=, n bytes; false: not understood. In env_read(). */
bool sysfault_rule(const char *s, size_t n);
void sysfault_clear(void); /* before the rules are read anew */

/* What the system call nr, with this second argument, is to give: -errno, or 0: it is made. Any
 * thread, any lock, signal handlers. Only where sysfault_on. */
long sysfault_due(long nr, long second);
bool sysfault_alloc_due(void);
/* Before malloc and its like: the rule for "alloc" refuses it. */
INLINE bool sysfault_alloc(void) { return unlikely(sysfault_on) && sysfault_alloc_due(); }

/* pthread_create, which can be refused with EAGAIN. */
int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

/* sysfault=count: how often each call was made, and its errors, on stderr. The end of gort_main. */
void sysfault_report(void);

#endif
