/*
 * The Boehm collector, where the program has it. See boehm.c.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include "base/upstairs.h"

/* gort_main, on its caller's thread, outside of sections. */
void collect_begin_run(void);
void collect_end_run(void);
/* A thread of the runtime, before it has a P and after it has none: may wait for the collector. */
void collect_thread_begin(M *m);
void collect_thread_end(M *m);
/* Calls fn while nobody is inside the collector. Outside of sections; fn may open one. */
void collect_apart(void (*fn)(void));

/* The monitor: a collection, where there was none for two minutes. */
void collect_look(M *m, int64_t now);
int64_t collect_due(void);
/* Threads of its own that the collector has started. */
int collect_threads(void);

/* Memory that the collector looks into and never frees itself, on a cache line; outside of
 * sections. NULL: no collector, or no memory. */
void *collect_alloc(size_t size);
bool collect_free(void *at); /* false: not its */

#endif
