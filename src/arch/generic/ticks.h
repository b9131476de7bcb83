/* Time stamps from a counter that runs at one rate by definition: the port's arch.h names it. */
#ifndef TICKS_H
#define TICKS_H

#include "arch.h"

#include <stdbool.h>

static inline uint64_t arch_ticks(void) {
    return ARCH_VALUE(uint64_t, ARCH_COUNTER : "=r"(value_));
}
static inline bool arch_ticks_steady(void) { return true; }

#endif
