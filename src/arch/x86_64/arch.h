/* x86-64: what the scheduler needs of the processor. switch.S holds the first frame. */
#ifndef ARCH_H
#define ARCH_H

/* The offset of M's left_at, for return_thunk.S (ARCH_RETURNS_APART). */
#define ARCH_LEFT_AT 80
#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>

/*
 * The context switch. A context is, from its sp upwards: mxcsr and x87 control word, where it goes
 * on, rbp. The compiler saves what else it needs in the frame; rbp cannot be declared clobbered.
 *
 * The switch is inline for the sake of prediction. A processor predicts a `ret` by its stack of
 * calls, which knows nothing of a change of stacks: behind a switch each return up the goroutine's
 * chain mispredicts, at 4 ns, unless the goroutine that left was in the same functions. Inline in
 * the public call there is one such return, into the program (ARCH_RETURNS_APART). The jump through
 * memory is predicted by what happened before, and that repeats around a switch.
 *
 * The context lies below the stack pointer, in the red zone (the library is compiled with
 * -mno-red-zone), so that the unwind tables of the function around it stay true throughout.
 *
 * The environment of <fenv.h> travels with the goroutine. fenv sets the x87 control word and MXCSR
 * alike; reading the former costs half a nanosecond, the latter four. So while the x87 word has its
 * default value MXCSR is taken to have its own, and both are loaded only where the two sides
 * differ. A setting of MXCSR alone (flush-to-zero intrinsics) belongs to the thread, and so do the
 * flags; where a goroutine is one they travel (arch_fp_rest).
 */
static inline __attribute__((always_inline)) void arch_switch(void **save, void *to) {
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "leaq -24(%%rsp), %%rdx\n\t"
                     "fnstcw -20(%%rsp)\n\t"
                     "movl $0x1f80, -24(%%rsp)\n\t" /* the default of MXCSR */
                     "movq %%rax, -16(%%rsp)\n\t"
                     "movq %%rbp, -8(%%rsp)\n\t"
                     "movzwl -20(%%rsp), %%ecx\n\t"
                     "cmpl $0x037f, %%ecx\n\t" /* the default of the x87 word */
                     "jne 2f\n"
                     "5:\tmovq %%rdx, (%%rdi)\n\t"
                     "leaq 24(%%rsi), %%rsp\n\t"
                     "cmpw 4(%%rsi), %%cx\n\t"
                     "jne 3f\n"
                     "4:\tmovq 16(%%rsi), %%rbp\n\t"
                     "jmpq *8(%%rsi)\n\t"
                     ".subsection 1\n"
                     "2:\tstmxcsr -24(%%rsp)\n\t"
                     "jmp 5b\n"
                     "3:\tldmxcsr (%%rsi)\n\t"
                     "fldcw 4(%%rsi)\n\t"
                     "jmp 4b\n\t"
                     ".previous\n"
                     "1:"
                     : "+D"(save), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
#ifdef __AVX512F__
                       ,
                       "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                       "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1",
                       "k2", "k3", "k4", "k5", "k6", "k7"
#endif
    );
}

static inline __attribute__((always_inline)) void arch_fp_default(void) {
    uint16_t cw;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    if (__builtin_expect(cw == 0x037f, 1)) return;
    uint32_t mxcsr = 0x1f80;
    cw = 0x037f;
    __asm__ volatile("fldcw %0\n\tldmxcsr %1" : : "m"(cw), "m"(mxcsr));
}

typedef struct ArchFp {
    uint32_t mxcsr;
    uint16_t cw;
} ArchFp;
static inline uint32_t arch_fp_rest(void) {
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return mxcsr;
}
static inline void arch_fp_rest_set(uint32_t mxcsr) {
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}
static inline ArchFp arch_fp_get(void) {
    ArchFp fp = {.mxcsr = arch_fp_rest()};
    __asm__ volatile("fnstcw %0" : "=m"(fp.cw));
    return fp;
}
static inline void arch_fp_set(ArchFp fp) {
    arch_fp_rest_set(fp.mxcsr);
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(fp.cw));
}

/* The return into the program behind a switch: the processor predicts the place from which the
 * goroutine that left was called. Where many run the same code that is right. Else a jump is
 * better, predicted by what happened before: 12 ns less for a round trip over a channel. But a jump
 * leaves its entry on the processor's stack of calls, so jumping always makes the returns around
 * the call miss: 34 ns a hop instead of 19. So a function that waits, marked ARCH_RETURNS_APART,
 * notes its return address in m->left_at before it leaves, and returns through a thunk
 * (return_thunk.S) that compares its own with what the goroutine before has left there. */
#if defined(__has_attribute) && !defined(__CET__) && \
    !defined(ARCH_RETURNS_APART) /* CET forbids it, and the jump */
#if __has_attribute(function_return)
#define ARCH_RETURNS_APART __attribute__((function_return("thunk-extern")))
#endif
#endif
#include "arch/port.h"

static inline void arch_pause(void) { __builtin_ia32_pause(); }

#define ARCH_STORE_SP(at) __asm__ volatile("movq %%rsp, %0" : "=m"(at))

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

#define ARCH_TLS_READ(name) \
    ARCH_VALUE(void *, "movq " #name "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(value_))
#define ARCH_THREAD_POINTER() ARCH_VALUE(char *, "movq %%fs:0, %0" : "=r"(value_))
#define ARCH_TLS_AT(offset) ARCH_VALUE(void *, "movq %%fs:(%1), %0" : "=r"(value_) : "r"(offset))

#define ARCH_RSEQ_SIGNATURE 0x53053053
extern bool arch_fsgsbase; /* context.c: programs may write fsbase */
static inline void arch_tp_set(void *tp) {
    if (__builtin_expect(arch_fsgsbase, 1)) __asm__ volatile("wrfsbase %0" : : "r"(tp) : "memory");
    else arch_sys6(158, 0x1002, (long)tp, 0, 0, 0, 0); /* the system call for that */
}

static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame; }

#endif /* not in assembler */
/* trap.S: the number of goroutines that can be made to stop at once where a call of libc returns
 * (inlibc.c), the bytes of an entry, and where in it the address to return to is. */
#define ARCH_RETURN_TRAPS 256
#define ARCH_TRAP_SIZE 16
#define ARCH_TRAP_ENTRY 9

#endif
