/* Memory for what the live page answers (scratch.c). On goroutines of the library's own. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include "base/print.h"
#include "sched/goexit.h"

typedef struct ScratchPart ScratchPart;
typedef struct Scratch { /* in the frame of the goroutine's function */
    ExitHook hook;
    ScratchPart *parts; /* newest first */
} Scratch;

/* Around all that a goroutine takes. The end takes back what is still there. */
void scratch_begin(Scratch *s);
void scratch_end(Scratch *s);

/* n bytes, all zero, in pages of their own; NULL: no memory. */
void *scratch_get(size_t n);
void scratch_free(void *at);
void *scratch_grow(void *at, size_t n); /* with what stands at `at`; NULL: no memory, at stays */

/* A text that grows; the owner frees buf. `failed`: there was no memory. */
bool scratch_more(Out *o);
#define OUT_GROWING ((Out){.fd = -1, .more = scratch_more})

#endif
