/* The return of a function marked ARCH_RETURNS_APART (arch.h). The compiler, which chose the name,
 * jumps here instead of a ret, with the registers of the caller restored; rcx and r8 are free.
 * Weak: a program compiled with -mfunction-return brings its own, which does as well. */
#include "arch.h"
#include "arch/macros.S"

        .weak   __x86_return_thunk
        .hidden __x86_return_thunk
        .type   __x86_return_thunk, @function
        .p2align 5
__x86_return_thunk:
        .cfi_startproc
        movq    tls_m@gottpoff(%rip), %r8
        movq    %fs:(%r8), %r8
        movq    (%rsp), %rcx
        cmpq    %rcx, ARCH_LEFT_AT(%r8)
        jne     1f
        ret
1:      addq    $8, %rsp
        .cfi_def_cfa_offset 0
        .cfi_register rip, rcx
        jmpq    *%rcx
        END __x86_return_thunk
