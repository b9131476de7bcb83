/* The Boehm collector, where the program has it. See boehm.c. */
#ifndef BOEHM_H
#define BOEHM_H

#include "base/upstairs.h"

/* gort_main, on its caller's thread, outside of sections. */
void collect_begin_run(void);
void collect_end_run(void);
/* A thread of the runtime, before it has a P and after its last: may wait for the collector. */
void collect_thread_begin(M *m);
void collect_thread_end(M *m);
/* Calls fn while no thread is inside the collector. Outside of sections; fn may open one. */
void collect_apart(void (*fn)(void));

extern const MonitorClient collect_client; /* a collection, where there was none for two minutes */
/* Threads that the collector itself has started. */
int collect_threads(void);

/* Cache-aligned memory, scanned and never collected; NULL: none. Outside of sections. */
void *collect_alloc(size_t size);
bool collect_free(void *at); /* false: not its */

#endif
