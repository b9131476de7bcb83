/*
 * The only thread-local variable of the library. It is read by getm() alone, which reads its
 * address anew each time (runtime.h, arch.h), so no compiler can keep it over a switch.
 */
#include "runtime.h"

__thread M *tls_m;

/* errno of the current thread, at an address that no caller may keep over a gort call. */
EXPORT NOINLINE int *gort_errno_location(void) { return __errno_location(); }
