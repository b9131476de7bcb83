/*
 * x86-64: what the scheduler needs of the processor. switch.S holds the first frame.
 */
#ifndef ARCH_H
#define ARCH_H

/* offset of M's left_at: see ARCH_RETURNS_APART. (return_thunk.S knows it too.) */
#define ARCH_LEFT_AT 80
#ifndef __ASSEMBLER__

#include <stdint.h>

/*
 * The context switch: *save = where this context is saved, then on at the context `to`. Comes back
 * when somebody switches to what was saved. From the saved sp upwards: mxcsr and x87 control word,
 * where it goes on, rbp.
 *
 * It stands in the code of whoever switches, for the sake of prediction. Processors predict a `ret`
 * by a stack of their own of the calls made, which knows nothing of a change of stacks: behind a
 * switch each return up the other goroutine's chain mispredicts, at 4 ns each, unless the one that
 * left stood in the same functions. So there must be few returns: with the switch inline in the
 * public call there is one, into the program. A jump through memory, on the other hand, is
 * predicted by what happened before, and what happens around a switch repeats. (A mutex handed over
 * among eight goroutines: 63 ns with the switch at the bottom of four calls, 37 so.) The return
 * into the program remains: see ARCH_RETURNS_APART. The compiler keeps what it needs over the
 * switch in the frame, as everything is clobbered; so only rbp is saved here, which cannot be
 * declared so.
 *
 * Everything lies below the stack pointer, in the red zone, so that the unwind tables of the
 * function around it are true before, at the point where a saved context goes on, and after. (The
 * library is compiled with -mno-red-zone: no function of it has anything there.)
 *
 * The floating-point environment travels with the goroutine as <fenv.h> knows it. All of fenv sets
 * the x87 control word and MXCSR alike, and reading the former costs half a nanosecond, the latter
 * four, more than the rest of the switch. So the x87 word is the witness: while it has its default
 * value MXCSR is taken to have its own, and both are loaded only where the two sides differ. What
 * sets MXCSR alone (flush-to-zero intrinsics) belongs to the thread.
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

/* The floating-point environment that a first frame has, for a goroutine that begins without a
 * switch. By the same witness. */
static inline __attribute__((always_inline)) void arch_fp_default(void) {
    uint16_t cw;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    if (__builtin_expect(cw == 0x037f, 1)) return;
    uint32_t mxcsr = 0x1f80;
    cw = 0x037f;
    __asm__ volatile("fldcw %0\n\tldmxcsr %1" : : "m"(cw), "m"(mxcsr));
}

/* The first frame of a new stack: switching to the result calls entry(arg) with an aligned
 * stack, and unwinding ends there. */
void *arch_first_frame(void *top, void (*entry)(void *), void *arg);

/* Runs fn(arg) on the stack that ends at top; comes back when fn returns. */
long arch_call_on(void *top, long (*fn)(void *), void *arg);
/* fn(arg); where it does not return but is unwound, exception.c sees it. */
long arch_call_guarded(long (*fn)(void *), void *arg);

/*
 * The last return behind a switch, into the program, has no good prediction in the processor's
 * stack of calls: on top there is where the goroutine that left was called from. If this one was
 * called from the same place, as where many run the same code, that is right, and so is everything
 * below it. If not, a jump is better, since jumps are predicted by what happened before, where not
 * too many other jumps lie between: 12 ns less for a round trip over a channel between two
 * functions. Its price is that the entry stays on top of the processor's stack, so that with a jump
 * always (tried) every return of the functions around the call misses, where it would not have: 19
 * ns a hop became 34.
 *
 * So a function that waits, marked thus, notes in m->left_at where it will return to, before it
 * leaves, and returns through a thunk (return_thunk.S), which compares this with what the one
 * before has left there. It is to be the tail of the public call, and is only for the case that
 * something has to wait.
 */
#if defined(__has_attribute) && !defined(__CET__) && \
    !defined(ARCH_RETURNS_APART) /* CET forbids it, and the jump */
#if __has_attribute(function_return)
#define ARCH_RETURNS_APART __attribute__((function_return("thunk-extern")))
#endif
#endif
#ifndef ARCH_RETURNS_APART
#define ARCH_RETURNS_APART
#endif
static inline void arch_pause(void) { __builtin_ia32_pause(); }

/* The stack pointer, as arch_context_sp() gives it to a handler that interrupts the next
 * instructions. */
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

/* A thread-local word, read anew each time: compilers keep the address of a thread-local over
 * calls, which is wrong as soon as a goroutine changes threads (DESIGN 3). */
#define ARCH_TLS_READ(name)                                                         \
    ({                                                                              \
        void *value_;                                                               \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" \
                         : "=r"(value_));                                           \
        value_;                                                                     \
    })
/* The thread pointer, and what stands at that distance from it: thread-locals of another module. */
#define ARCH_THREAD_POINTER()                               \
    ({                                                      \
        char *value_;                                       \
        __asm__ volatile("movq %%fs:0, %0" : "=r"(value_)); \
        value_;                                             \
    })
#define ARCH_TLS_AT(offset)                                                  \
    ({                                                                       \
        void *value_;                                                        \
        __asm__ volatile("movq %%fs:(%1), %0" : "=r"(value_) : "r"(offset)); \
        value_;                                                              \
    })

/* The program counter and stack pointer of a signal's context, and the EINTR repair
 * (PREEMPTION.md, rule 2): if the interrupted thread has just come out of a system call with
 * -EINTR, step back so that it makes the call again. But not one that a handler of the program's
 * has caused, behind which our signal came due. */
struct ucontext_t;
uintptr_t arch_context_pc(void *ucontext);
uintptr_t arch_context_sp(void *ucontext);
uintptr_t arch_context_fp(void *ucontext);
void arch_repair_eintr(void *ucontext);
/* it stands at a system call, to be made (again): that gives -EINTR instead */
void arch_end_call(void *ucontext);

/* The caller's frame pointer and the return address stand at the frame's address. */
static inline uintptr_t *arch_frame_record(void *frame) { return (uintptr_t *)frame; }

/* Where a switched-out context will continue, and its frame pointer, for backtraces. */
static inline uintptr_t arch_saved_pc(void *sp) { return ((uintptr_t *)sp)[1]; }
static inline uintptr_t arch_saved_fp(void *sp) { return ((uintptr_t *)sp)[2]; }

#endif /* not in assembler */
/* trap.S: so many goroutines at a time can be made to stop where a call of libc returns (inlibc.c).
 * An entry is that many bytes long, and this far in is the address to return to. */
#define ARCH_RETURN_TRAPS 256
#define ARCH_TRAP_SIZE 16
#define ARCH_TRAP_ENTRY 9

#endif
