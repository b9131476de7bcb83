/* Figures for gort-top (top.c). */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include "runtime.h"

/* At the start and the end of gort_main. */
void top_begin_run(void);
void top_end_run(void);

/* The monitor only: */
void top_look(M *m, int64_t now); /* in each round */
int64_t top_idle(int64_t now);    /* before a long sleep: when to look again at the latest */

#endif
