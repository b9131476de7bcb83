/* Figures for gort-top (top.c). */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include "base/upstairs.h"

/* At the start and the end of gort_main. */
void top_begin_run(void);
void top_end_run(void);

extern const MonitorClient top_client;

#endif
