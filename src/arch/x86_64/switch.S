/*
 * Where a goroutine begins, and a call on another stack. The switch itself is in arch.h.
 */
        .text
/* A new goroutine starts here, with its entry and the argument on top of the stack. Marked as the
 * outermost frame, where a debugger's backtrace ends. */
        .globl  arch_entry
        .hidden arch_entry
        .type   arch_entry, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop                     /* an unwinder looks up the address before the return address */
arch_entry:
        movq    8(%rsp), %rdi
        callq   *(%rsp)
        ud2
        .cfi_endproc
        .size   arch_entry, .-arch_entry

        .globl  arch_call_on
        .hidden arch_call_on
        .type   arch_call_on, @function
        .p2align 4
arch_call_on:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        movq    %rdi, %rsp
        andq    $-16, %rsp
        movq    %rdx, %rdi
        callq   *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   arch_call_on, .-arch_call_on

        .section .note.GNU-stack,"",@progbits
