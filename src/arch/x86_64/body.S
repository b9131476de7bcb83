/*
 * The two ends of a body (sched/body.c). A context is as arch_switch (arch.h) has it, from its sp
 * upwards: mxcsr and x87 control word, where it goes on, rbp.
 */
#include "arch/macros.S"

#define SYS_clone 56
#define SYS_exit 60
#define SYS_futex 202
#define FUTEX_WAKE_PRIVATE 129

/* arch_donate(void **save, uint32_t *donated): the kernel thread ends, and the thread that switches
 * to *save returns from here. From the store into *donated on the stack is another thread's. */
        FUNCTION arch_donate
        PUSH_FRAME
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        pushq   %rbp
        leaq    1f(%rip), %rax
        pushq   %rax
        subq    $8, %rsp
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (%rdi)
        movl    $1, (%rsi)
        movq    %rsi, %rdi
        movl    $FUTEX_WAKE_PRIVATE, %esi
        movl    $1, %edx
        movl    $SYS_futex, %eax
        syscall
2:      xorl    %edi, %edi
        movl    $SYS_exit, %eax
        syscall
        jmp     2b
1:      popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        .cfi_def_cfa rsp, 8
        ret
        END arch_donate

/* long arch_clone_at(long flags, void *context, uint32_t *cleared, void *tp): a kernel thread that
 * goes on at the context. */
        FUNCTION arch_clone_at
        movq    %rdx, %r10
        movq    %rcx, %r8
        xorl    %edx, %edx
        movl    $SYS_clone, %eax
        syscall
        testq   %rax, %rax
        jz      1f
        ret
1:      ldmxcsr (%rsp)
        fldcw   4(%rsp)
        movq    16(%rsp), %rbp
        movq    8(%rsp), %rax
        leaq    24(%rsp), %rsp
        jmpq    *%rax
        END arch_clone_at
