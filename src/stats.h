#ifndef STATS_H
#define STATS_H

#include "runtime.h"

void counters_read(Counters *sum); /* over all Ps; created - ended is never negative. Any thread */
uint32_t p_queue(P *p);            /* length of p's ring, without the LIFO slot. Any thread */

#endif
