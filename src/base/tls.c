/* The thread's M (fork.c has what is local to a vfork). getm() alone reads tls_m, and reads its
 * address anew each time (runtime.h, arch.h), so no compiler can keep it over a switch. tls_runner
 * is the same on a thread that runs goroutines, and NULL on all others (plain threads, the monitor,
 * a forked child): libgort-hook.so's one test. */
#include "runtime.h"

__thread M *tls_m, *tls_runner;

/* errno of the current thread. No caller may keep the address over a gort call. */
EXPORT NOINLINE int *gort_errno_location(void) { return __errno_location(); }
