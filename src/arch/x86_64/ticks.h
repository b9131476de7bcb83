/* x86-64: a clock that costs a few nanoseconds, for time stamps. */
#ifndef TICKS_H
#define TICKS_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t arch_ticks(void) { return __builtin_ia32_rdtsc(); }

/* The counter runs at one rate in every state of the processor. */
static inline bool arch_ticks_steady(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}

#endif
