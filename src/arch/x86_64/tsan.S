/*
 * A call that preserves every register, for functions of TSan's (tsan_key.h): the compiler does not
 * know of it, so the fast paths around it save nothing. The function is in rax, its arguments in
 * rdi, rsi and rdx.
 */
        .text
        .globl  tsan_call
        .hidden tsan_call
        .type   tsan_call, @function
        .p2align 4
tsan_call:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        pushq   %rax
        pushq   %rcx
        pushq   %rdx
        pushq   %rsi
        pushq   %rdi
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %r11
        subq    $512, %rsp
        andq    $-64, %rsp
        fxsave  (%rsp)
        cld
        call    *%rax
        fxrstor (%rsp)
        movq    -8(%rbp), %rax
        movq    -16(%rbp), %rcx
        movq    -24(%rbp), %rdx
        movq    -32(%rbp), %rsi
        movq    -40(%rbp), %rdi
        movq    -48(%rbp), %r8
        movq    -56(%rbp), %r9
        movq    -64(%rbp), %r10
        movq    -72(%rbp), %r11
        leave
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   tsan_call, . - tsan_call

        .section .note.GNU-stack, "", @progbits
