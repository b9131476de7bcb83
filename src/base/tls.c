/*
 * The only thread-local variables of the library. tls_m is read by getm() alone, which reads its
 * address anew each time (runtime.h, arch.h), so no compiler can keep it over a switch.
 *
 * tls_runner is the same where the thread is one that runs goroutines, and NULL on all others:
 * plain threads that have called in, the monitor, a forked child. It is libgort-hook.so's one test.
 */
#include "runtime.h"

__thread M *tls_m, *tls_runner;

/* errno of the current thread, at an address that no caller may keep over a gort call. */
EXPORT NOINLINE int *gort_errno_location(void) { return __errno_location(); }
