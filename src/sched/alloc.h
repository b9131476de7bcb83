/*
 * Small objects for the runtime's own rooms. See alloc.c.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include "runtime.h"

/* Memory on a cache line, outside of sections only; errno stays as it is. NULL: none. */
void *quiet_alloc(size_t size);
void quiet_free(void *at);

/* The P goes away, or its runtime has ended: its cache goes to the central lists. */
void alloc_flush(P *p);

#endif
