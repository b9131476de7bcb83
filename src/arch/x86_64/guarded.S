/*
 * fn(arg) in a frame that an exception does not pass unseen: exception.c.
 */
        .text
        .globl  arch_call_guarded
        .hidden arch_call_guarded
        .hidden guard_personality
        .type   arch_call_guarded, @function
        .p2align 4
arch_call_guarded:
        .cfi_startproc
        .cfi_personality 0x1b, guard_personality
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        callq   *%rax
        popq    %rbp
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   arch_call_guarded, .-arch_call_guarded

        .section .note.GNU-stack,"",@progbits
