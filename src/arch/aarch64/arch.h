/*
 * aarch64: what the scheduler needs of the processor. switch.S holds the context switch.
 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* Saves the callee-saved registers, *save = sp, and continues at the sp `to`. A saved context, from
 * sp upwards: fpcr, x18 | x19 … x28 | x29, x30 | d8 … d15 */
void arch_switch(void **save, void *to);
/* Sets the default floating-point environment, where a goroutine begins without a switch. */
static inline void arch_fp_default(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    if (__builtin_expect(fpcr != 0, 0)) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
}
void *arch_first_frame(void *top, void (*entry)(void *), void *arg);
long arch_call_on(void *top, long (*fn)(void *), void *arg);
/* Calls fn(arg); if an exception unwinds it, exception.c learns of it. */
long arch_call_guarded(long (*fn)(void *), void *arg);

#ifndef ARCH_RETURNS_APART
#define ARCH_RETURNS_APART /* of use on x86-64 only, so far */
#endif

static inline void arch_pause(void) { __asm__ volatile("isb" ::: "memory"); }

/* Stores the stack pointer as arch_context_sp() gives it to a handler from here on. */
#define ARCH_STORE_SP(at)                               \
    do {                                                \
        uintptr_t sp_;                                  \
        __asm__ volatile("mov %0, sp" : "=r"(sp_));     \
        __atomic_store_n(&(at), sp_, __ATOMIC_RELAXED); \
    } while (0)

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

/* Reads a thread-local word anew each time. Compilers keep the address of a thread-local over
 * calls, which is wrong once a goroutine changes threads. */
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
/* The thread pointer, and the word at an offset from it: thread-locals of another module. */
#define ARCH_THREAD_POINTER()                                 \
    ({                                                        \
        char *value_;                                         \
        __asm__ volatile("mrs %0, tpidr_el0" : "=r"(value_)); \
        value_;                                               \
    })
#define ARCH_TLS_AT(offset)                                                                      \
    ({                                                                                           \
        void *value_;                                                                            \
        __asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=&r"(value_) : "r"(offset)); \
        value_;                                                                                  \
    })

uintptr_t arch_context_pc(void *ucontext);
uintptr_t arch_context_sp(void *ucontext);
uintptr_t arch_context_fp(void *ucontext);
void arch_repair_eintr(void *ucontext);
/* The thread is about to make a system call: it gets -EINTR instead. */
void arch_end_call(void *ucontext);

/* The caller's frame pointer and the return address stand at the frame's address. */
static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame; }

/* Where a switched-out context will continue, and its frame pointer, for backtraces. */
static inline uintptr_t arch_saved_pc(void *sp) { return ((uintptr_t *)sp)[13]; }
static inline uintptr_t arch_saved_fp(void *sp) { return ((uintptr_t *)sp)[12]; }

#endif
