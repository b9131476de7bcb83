/*
 * Figures for gort-top (top.c).
 */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include <stdint.h>

/* At the start and the end of gort_main. */
void top_begin_run(void);
void top_end_run(void);

/* The monitor: in each round, before a long sleep, and until when it may sleep. */
void top_look(int64_t now);
void top_idle(int64_t now);
int64_t top_due(int64_t now);

#endif
