/*
 * Reports of the end, for those that end the process in their own way (fatal.c).
 */
#ifndef FATAL_H
#define FATAL_H

#include "base/base.h"

/* The line "gort: fatal: ..." and the dump, once per process: a second thread that fails waits
 * here for ever, the same thread failing again aborts. The trace starts with the caller, who then
 * ends the process. Any thread, any lock, in a handler. */
void fatal_report(const char *format, ...) PRINTF(1, 2);

/* True, once per process: the calling thread is the one that reports. For those who have a report
 * of their own. */
bool first_to_speak(void);

#endif
