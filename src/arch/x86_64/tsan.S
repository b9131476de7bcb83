/* A call that preserves every register, for functions of TSan's (tsan_key.h): the compiler does not
 * know of it, so the fast paths around it save nothing. Function: rax; arguments: rdi, rsi, rdx. */
#include "arch/macros.S"

        FUNCTION tsan_call
        PUSH_FRAME
        .irp    reg, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
        pushq   %\reg
        .endr
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
        END tsan_call
