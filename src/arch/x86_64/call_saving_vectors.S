/* A call on another stack that preserves every vector register: in a prologue that fails its check
 * they hold arguments, and the slow path behind it may use them all. The state, up to 2.7 KB with
 * AVX-512, goes to the other stack: by xsave where the system uses it, else by fxsave. */
#include "arch/macros.S"

#define COMPONENTS 0xe7 /* x87, SSE, AVX, AVX-512: not the tiles of AMX, which hold no arguments */

        FUNCTION arch_call_saving
        PUSH_FRAME
        pushq   %rbx
        .cfi_offset rbx, -24
        pushq   %r12
        .cfi_offset r12, -32
        movq    %rdi, %rsp
        subq    $4096, %rsp
        andq    $-64, %rsp
        movq    %rsi, %r10
        movq    %rdx, %r12
        movl    way(%rip), %ebx
        testl   %ebx, %ebx
        jnz     5f
        movl    $1, %eax                /* once: cpuid is slow in a virtual machine */
        cpuid
        xorl    %ebx, %ebx
        btl     $27, %ecx               /* the system uses xsave */
        adcl    $1, %ebx
        movl    %ebx, way(%rip)
5:      subl    $1, %ebx
        jz      1f
        xorl    %eax, %eax
        leaq    512(%rsp), %rdi         /* the header has to be zero */
        movl    $8, %ecx
        rep stosq
        movl    $COMPONENTS, %eax
        xorl    %edx, %edx
        xsave64 (%rsp)
        jmp     2f
1:      fxsave64 (%rsp)
2:      movq    %r12, %rdi
        callq   *%r10
        movq    %rax, %r12
        testl   %ebx, %ebx
        jz      3f
        movl    $COMPONENTS, %eax
        xorl    %edx, %edx
        xrstor64 (%rsp)
        jmp     4f
3:      fxrstor64 (%rsp)
4:      movq    %r12, %rax
        movq    -8(%rbp), %rbx
        movq    -16(%rbp), %r12
        leave
        .cfi_def_cfa rsp, 8
        ret
        END arch_call_saving

        .local  way
        .comm   way, 4, 4               /* 0: unknown, 1: fxsave, 2: xsave */
