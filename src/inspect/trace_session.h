/* A trace from its beginning to its file. See trace_session.c. */
#ifndef TRACE_SESSION_H
#define TRACE_SESSION_H

#include "inspect/trace_form.h"

/* Begins a trace into the descriptor, which is the tracer's from then on. 0, -EBUSY, -errno. */
int tracing_start(int fd, const TraceForm *form);
/* Ends it and writes the file. 0, -EINVAL: none runs, -errno. Blocks the thread. */
int tracing_stop(void);
/* Writes the newest `most` bytes of what the flight recorder holds, which goes on. 0, -EINVAL: it
 * is off, -EBUSY: a trace has begun meanwhile, -errno. Blocks the thread. */
int tracing_last(int fd, const TraceForm *form, uint64_t most);
uint64_t tracing_size(void); /* bytes of events so far, without the last chunks; any thread */
/* At the start and the end of gort_main: GORT_TRACE and the flight recorder. */
void tracing_begin_run(void);
void tracing_end_run(void);
/* The process ends, by fatal() or a signal: writes what there is. Any state; allocates with mmap
 * only. */
void tracing_fatal(void);

/* Signals that end the program (trace_signals.c). */
void trace_signals_install(void);
void trace_signals_uninstall(void);
NORETURN void trace_signals_die(int signo);
/* In a handler: this thread was writing a trace; it dies by the signal when that is whole. */
bool tracing_writes_here(void);
void tracing_dies_by(int signo);

#endif
