/*
 * riscv64: the time register, which counts at one rate on all harts by definition.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t arch_ticks(void) {
    uint64_t v;
    __asm__ volatile("rdtime %0" : "=r"(v));
    return v;
}
static inline bool arch_ticks_steady(void) { return true; }

#endif
