/* A port without -fsplit-stack: there is no guard to set, and no stack grows by segments. */
#ifndef GUARD_H
#define GUARD_H

#include <stdint.h>

#define ARCH_SPLITS 0

static inline void arch_guard_set(uintptr_t guard) { (void)guard; }
static inline uintptr_t *arch_guard_at(void) { return (uintptr_t *)0; }
static inline uintptr_t arch_sp(void) { return (uintptr_t)__builtin_frame_address(0); }

#endif
