/* x86-64: the word that prologues of -fsplit-stack compare the stack pointer with. */
#ifndef GUARD_H
#define GUARD_H

#include <stdint.h>

#define ARCH_SPLITS 1

static inline void arch_guard_set(uintptr_t guard) {
    __asm__ volatile("movq %0, %%fs:0x70" : : "r"(guard) : "memory");
}

/* The current thread's word, for other threads. */
static inline uintptr_t *arch_guard_at(void) {
    uintptr_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return (uintptr_t *)(self + 0x70);
}

static inline uintptr_t arch_sp(void) {
    uintptr_t sp;
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
    return sp;
}

/* arch_call_on that preserves the vector registers. */
long arch_call_saving(void *top, long (*fn)(void *), void *arg);

#endif
