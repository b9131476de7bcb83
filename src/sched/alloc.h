/* Small objects for the runtime's own rooms (alloc.c). */
#ifndef ALLOC_H
#define ALLOC_H

#include "runtime.h"

/* Memory aligned to a cache line; NULL: none. Outside of sections only; errno is preserved. */
void *quiet_alloc(size_t size);
void quiet_free(void *at);

/* Moves p's cache to the central lists: p goes away, or its runtime has ended. */
void alloc_flush(P *p);

#endif
