/* riscv64 (rv64gc, lp64d): what the scheduler needs of the processor. switch.S has the switch. */
#ifndef ARCH_H
#define ARCH_H

#include "arch/port.h"

#if !defined(__riscv_float_abi_double)
#error "gort's riscv64 port is for lp64d: floating-point registers of 64 bits"
#endif

/* A saved context, from sp upwards: fcsr, ra | s0 ... s11 | fs0 ... fs11 */
void arch_switch(void **save, void *to);
static inline void arch_fp_default(void) {
    uint64_t fcsr;
    __asm__ volatile("frcsr %0" : "=r"(fcsr));
    if (__builtin_expect(fcsr != 0, 0)) __asm__ volatile("fscsr zero");
}

typedef struct ArchFp {
    uint64_t fcsr;
} ArchFp;
static inline uint64_t arch_fp_rest(void) { return 0; } /* the switch saves all */
static inline void arch_fp_rest_set(uint64_t rest) {}
static inline ArchFp arch_fp_get(void) {
    ArchFp fp;
    __asm__ volatile("frcsr %0" : "=r"(fp.fcsr));
    return fp;
}
static inline void arch_fp_set(ArchFp fp) { __asm__ volatile("fscsr %0" : : "r"(fp.fcsr)); }

#define ARCH_COUNTER "rdtime %0" /* ticks.h: the same on all harts */
/* Zihintpause's `pause`, spelt as the fence it is to a processor (or an assembler) without it. */
static inline void arch_pause(void) { __asm__ volatile(".4byte 0x0100000f" ::: "memory"); }

#define ARCH_STORE_SP(at) \
    __atomic_store_n(&(at), ARCH_VALUE(uintptr_t, "mv %0, sp" : "=r"(value_)), __ATOMIC_RELAXED)

static inline long arch_sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long a7 __asm__("a7") = nr;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
}

#define ARCH_TLS_READ(name) \
    ARCH_VALUE(void *, "la.tls.ie %0, " #name "\n\tadd %0, %0, tp\n\tld %0, 0(%0)" : "=&r"(value_))
#define ARCH_THREAD_POINTER() ARCH_VALUE(char *, "mv %0, tp" : "=r"(value_))
#define ARCH_TLS_AT(offset) \
    ARCH_VALUE(void *, "add %0, tp, %1\n\tld %0, 0(%0)" : "=&r"(value_) : "r"(offset))

#define ARCH_RSEQ_SIGNATURE 0xf1401073
static inline void arch_tp_set(void *tp) { __asm__ volatile("mv tp, %0" : : "r"(tp) : "memory"); }

static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame - 2; }

#endif
