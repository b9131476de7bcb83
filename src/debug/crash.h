/* A crash in words (crash.c). */
#ifndef CRASH_H
#define CRASH_H

#include "base/base.h"

#include <signal.h>

/* A line and the frames on stderr: SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, in its handler, on
 * any thread. handled: a handler of the program's comes next. The caller speaks (fatal.h). */
void crash_report(int signo, const siginfo_t *info, void *context, bool handled);

#endif
