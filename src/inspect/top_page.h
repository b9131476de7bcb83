/* Figures for gort-top (top.c). */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include <stdint.h>

/* At the start and the end of gort_main. */
void top_begin_run(void);
void top_end_run(void);

/* The monitor only: */
void top_look(int64_t now);   /* in each round */
void top_idle(int64_t now);   /* before a long sleep */
int64_t top_due(int64_t now); /* until when it may sleep */

#endif
