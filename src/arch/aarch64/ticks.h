/*
 * aarch64: the generic timer, a clock that runs at one rate by definition.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t arch_ticks(void) {
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
}
static inline bool arch_ticks_steady(void) { return true; }

#endif
