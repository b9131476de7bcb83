/* Reports of the end, for callers that end the process in their own way (fatal.c). */
#ifndef FATAL_H
#define FATAL_H

#include "base/base.h"

/* The line "gort: fatal: ..." and the dump, once per process. The trace starts with the caller,
 * which then ends the process. Any thread, any lock, in a handler. */
void fatal_report(const char *format, ...) PRINTF(1, 2);

/* True, once per process: the calling thread reports. For callers with a report of their own. */
bool first_to_speak(void);

#endif
