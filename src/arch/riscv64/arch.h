/*
 * riscv64 (rv64gc, the lp64d calling convention): what the scheduler needs of the processor.
 * switch.S holds the context switch.
 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

#if !defined(__riscv_float_abi_double)
#error "gort's riscv64 port is for lp64d: floating-point registers of 64 bits"
#endif

/* Saves the callee-saved registers, *save = sp, and continues at the sp `to`. A saved context, from
 * sp upwards: fcsr, ra | s0 ... s11 | fs0 ... fs11 */
void arch_switch(void **save, void *to);
/* Sets the default floating-point environment, where a goroutine begins without a switch. */
static inline void arch_fp_default(void) {
    uint64_t fcsr;
    __asm__ volatile("frcsr %0" : "=r"(fcsr));
    if (__builtin_expect(fcsr != 0, 0)) __asm__ volatile("fscsr zero");
}
void *arch_first_frame(void *top, void (*entry)(void *), void *arg);
long arch_call_on(void *top, long (*fn)(void *), void *arg);
/* Calls fn(arg); if an exception unwinds it, exception.c learns of it. */
long arch_call_guarded(long (*fn)(void *), void *arg);

#ifndef ARCH_RETURNS_APART
#define ARCH_RETURNS_APART /* of use on x86-64 only, so far */
#endif

/* Zihintpause's `pause`, spelt as the fence it is to a processor (or an assembler) without it. */
static inline void arch_pause(void) { __asm__ volatile(".4byte 0x0100000f" ::: "memory"); }

/* Stores the stack pointer as arch_context_sp() gives it to a handler from here on. */
#define ARCH_STORE_SP(at)                               \
    do {                                                \
        uintptr_t sp_;                                  \
        __asm__ volatile("mv %0, sp" : "=r"(sp_));      \
        __atomic_store_n(&(at), sp_, __ATOMIC_RELAXED); \
    } while (0)

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

/* Reads a thread-local word anew each time. Compilers keep the address of a thread-local over
 * calls, which is wrong once a goroutine changes threads. */
#define ARCH_TLS_READ(name)                            \
    ({                                                 \
        void *value_;                                  \
        __asm__ volatile("la.tls.ie %0, " #name "\n\t" \
                         "add %0, %0, tp\n\t"          \
                         "ld %0, 0(%0)"                \
                         : "=&r"(value_));             \
        value_;                                        \
    })
/* The thread pointer, and the word at an offset from it: thread-locals of another module. */
#define ARCH_THREAD_POINTER()                         \
    ({                                                \
        char *value_;                                 \
        __asm__ volatile("mv %0, tp" : "=r"(value_)); \
        value_;                                       \
    })
#define ARCH_TLS_AT(offset)                                                               \
    ({                                                                                    \
        void *value_;                                                                     \
        __asm__ volatile("add %0, tp, %1\n\tld %0, 0(%0)" : "=&r"(value_) : "r"(offset)); \
        value_;                                                                           \
    })

uintptr_t arch_context_pc(void *ucontext);
uintptr_t arch_context_sp(void *ucontext);
uintptr_t arch_context_fp(void *ucontext);
void arch_repair_eintr(void *ucontext);
/* The thread is about to make a system call: it gets -EINTR instead. */
void arch_end_call(void *ucontext);

/* The caller's frame pointer and the return address stand below the frame's address. */
static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame - 2; }

/* Where a switched-out context will continue, and its frame pointer, for backtraces. */
static inline uintptr_t arch_saved_pc(void *sp) { return ((uintptr_t *)sp)[1]; }
static inline uintptr_t arch_saved_fp(void *sp) { return ((uintptr_t *)sp)[2]; }

#endif
