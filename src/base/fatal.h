/* Reports of the end, for callers that end the process in their own way (fatal.c). */
#ifndef FATAL_H
#define FATAL_H

#include "base/base.h"

/* The line "gort: fatal: ..." and the dump, once per process. The trace starts with the frame that
 * goes on at `from`, 0: with the caller, which then ends the process. Any thread, any lock, in a
 * handler. */
void fatal_report(uintptr_t from, const char *format, ...) PRINTF(2, 3);

void fatal_watch_exit(void); /* gort_main */

/* The calling thread reports; false: a thread does already. For callers with a report of their own.
 * The second waits while another thread reports; false: it is this one. */
bool first_to_speak(void);
bool speak_begin(void);
void speak_end(void); /* the process goes on */

#endif
