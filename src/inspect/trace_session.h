/* A trace from its beginning to its file. See trace_session.c. */
#ifndef TRACE_SESSION_H
#define TRACE_SESSION_H

#include "base/base.h"

/* Begins a trace into the descriptor, which is the tracer's from then on. 0, -EBUSY, -errno. */
int tracing_start(int fd);
/* Ends it and writes the JSON. 0, -EINVAL: none runs, -errno. Blocks the thread. */
int tracing_stop(void);
uint64_t tracing_size(void); /* bytes of events so far, without the last chunks; any thread */
/* At the start and the end of gort_main: GORT_TRACE and the flight recorder. */
void tracing_begin_run(void);
void tracing_end_run(void);
/* fatal(): writes what there is. Any state; allocates with mmap only. */
void tracing_fatal(void);

#endif
