/* Deadlines where no runtime runs. See clock.c. */
#ifndef CLOCK_H
#define CLOCK_H

#include "runtime.h"

typedef struct ClockEntry ClockEntry;
struct ClockEntry {
    /* clock.lock, while queued: */
    ClockEntry *next, *prev;
    int64_t when;
    void (*fn)(ClockEntry *); /* called on the clock's thread, with nothing held */
    bool queued;
};

/* In a section. True: the caller calls clock_start() after the section. */
bool clock_add(ClockEntry *e, int64_t when, void (*fn)(ClockEntry *));
int clock_start(void); /* 0, -EAGAIN */
/* True: it was queued and is no longer. False: its function runs or has run. Anywhere. */
bool clock_del(ClockEntry *e);
bool clock_armed(void); /* a deadline is to come, and perhaps ends a wait (deadlock.c) */

#endif
