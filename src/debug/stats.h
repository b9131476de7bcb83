#ifndef STATS_H
#define STATS_H

#include "runtime.h"

void counters_read(Counters *sum); /* over all Ps; created - ended is never negative. Any thread */
uint32_t p_queue(P *p);            /* length of p's ring, without the LIFO slot. Any thread */
/* A word for what a thread does, whose current G is gp. */
const char *m_state(M *m, G *gp);

#endif
