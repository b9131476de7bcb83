/*
 * x86-64: what the scheduler needs of the processor. switch.S holds the context switch.
 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* Saves the callee-saved registers and *save = sp, continues at the sp `to`. Returns when
 * somebody switches back. The layout of a saved context, from sp upwards:
 *   mxcsr/x87 cw, r15, r14, r13, r12, rbx, rbp, return into arch_switch, return address */
void arch_switch(void **save, void *to);

/* The first frame of a new stack: switching to the result calls entry(arg) with an aligned
 * stack, and unwinding ends there. */
void *arch_first_frame(void *top, void (*entry)(void *), void *arg);

/* Runs fn(arg) on the stack that ends at top; comes back when fn returns. */
long arch_call_on(void *top, long (*fn)(void *), void *arg);

static inline void arch_pause(void) { __builtin_ia32_pause(); }

static inline long arch_sys6(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

/* A thread-local word, read anew each time: compilers keep the address of a thread-local over
 * calls, which is wrong as soon as a goroutine changes threads (DESIGN 3). */
#define ARCH_TLS_READ(name)                                                                        \
    ({                                                                                             \
        void *value_;                                                                              \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"                 \
                         : "=r"(value_));                                                          \
        value_;                                                                                    \
    })

/* The program counter and stack pointer of a signal's context, and the EINTR repair
 * (PREEMPTION.md, rule 2): if the interrupted thread has just come out of a system call with
 * -EINTR, step back so that it makes the call again. */
struct ucontext_t;
uintptr_t arch_context_pc(void *ucontext);
uintptr_t arch_context_sp(void *ucontext);
uintptr_t arch_context_fp(void *ucontext);
void arch_repair_eintr(void *ucontext);

/* Where a switched-out context will continue, and its frame pointer, for backtraces. */
static inline uintptr_t arch_saved_pc(void *sp) { return ((uintptr_t *)sp)[8]; }
static inline uintptr_t arch_saved_fp(void *sp) { return ((uintptr_t *)sp)[6]; }

#endif
