/*
 * Where a call of libc returns to whose goroutine is to stop (inlibc.c): the return address on the stack was replaced by this
 * one. Results of the call (rax, rdx, xmm0, xmm1, x87) are kept; inlibc_left gives the address that it was. An unwinder does
 * not see past it.
 */
        .text
        .globl  arch_return_trap
        .hidden arch_return_trap
        .type   arch_return_trap, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop                     /* an unwinder looks up the address before the return address */
arch_return_trap:
        subq    $8, %rsp        /* the place of the return address */
        pushq   %rbp
        movq    %rsp, %rbp
        pushq   %rax
        pushq   %rdx
        subq    $512, %rsp
        andq    $-16, %rsp
        fxsave64 (%rsp)
        movq    %rbp, %rdi      /* the caller's rbp, its sp behind the next word */
        callq   inlibc_left
        fxrstor64 (%rsp)
        movq    %rax, 8(%rbp)
        movq    -8(%rbp), %rax
        movq    -16(%rbp), %rdx
        leave
        ret
        .cfi_endproc
        .size   arch_return_trap, .-arch_return_trap

        .section .note.GNU-stack,"",@progbits
