/* aarch64: what the scheduler needs of the processor. switch.S holds the context switch. */
#ifndef ARCH_H
#define ARCH_H

#include "arch/port.h"

/* A saved context, from sp upwards: fpcr, x18 | x19 … x28 | x29, x30 | d8 … d15 */
void arch_switch(void **save, void *to);
static inline void arch_fp_default(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    if (__builtin_expect(fpcr != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
}

typedef struct ArchFp {
    uint64_t fpcr, fpsr;
} ArchFp;
static inline uint64_t arch_fp_rest(void) {
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpsr" : "=r"(fpsr));
    return fpsr;
}
static inline void arch_fp_rest_set(uint64_t fpsr) {
    __asm__ volatile("msr fpsr, %0" : : "r"(fpsr));
}
static inline ArchFp arch_fp_get(void) {
    ArchFp fp = {.fpsr = arch_fp_rest()};
    __asm__ volatile("mrs %0, fpcr" : "=r"(fp.fpcr));
    return fp;
}
static inline void arch_fp_set(ArchFp fp) {
    arch_fp_rest_set(fp.fpsr);
    __asm__ volatile("msr fpcr, %0" : : "r"(fp.fpcr));
}

#define ARCH_COUNTER "mrs %0, cntvct_el0" /* ticks.h: the generic timer */
static inline void arch_pause(void) { __asm__ volatile("isb" ::: "memory"); }

#define ARCH_STORE_SP(at) \
    __atomic_store_n(&(at), ARCH_VALUE(uintptr_t, "mov %0, sp" : "=r"(value_)), __ATOMIC_RELAXED)

static inline long arch_sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

#define ARCH_TLS_READ(name)                                            \
    ({                                                                 \
        void *value_, *base_;                                          \
        __asm__ volatile("mrs %1, tpidr_el0\n\t"                       \
                         "adrp %0, :gottprel:" #name "\n\t"            \
                         "ldr %0, [%0, #:gottprel_lo12:" #name "]\n\t" \
                         "ldr %0, [%1, %0]"                            \
                         : "=&r"(value_), "=&r"(base_));               \
        value_;                                                        \
    })
#define ARCH_THREAD_POINTER() ARCH_VALUE(char *, "mrs %0, tpidr_el0" : "=r"(value_))
#define ARCH_TLS_AT(offset) \
    ARCH_VALUE(void *, "mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=&r"(value_) : "r"(offset))

#define ARCH_RSEQ_SIGNATURE 0xd428bc00
static inline void arch_tp_set(void *tp) {
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(tp) : "memory");
}

static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame; }

#endif
