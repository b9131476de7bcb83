/* Threads of the library's own that outlive a runtime: the fallback clock's and the signals'. */
#ifndef OWNTHREAD_H
#define OWNTHREAD_H

#include "runtime.h"

/* Starts fn detached, with all signals masked: handlers run in the program's threads. 0, and *pid,
 * where given, is this process; or -errno. errno stays as it is. Outside of sections. */
int own_thread_start(void (*fn)(void), int *pid);
/* By gort_main: in a child of fork the signals' thread, if channels watch. 0, -errno. */
int signal_resume(void);

#endif
