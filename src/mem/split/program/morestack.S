/*
 * __morestack: a prologue that finds no room calls it. See split.c for the protocol.
 *
 * At the call, r10 is the size of the function's frame and r11 that of its stack arguments; rdi,
 * rsi, rdx, rcx, r8, r9, rax (the static chain, and the count of vector arguments) and the vector
 * registers hold arguments. The frame of __morestack:
 *
 *     rbp + 24   stack arguments of the function
 *     rbp + 16   its return address
 *     rbp +  8   return onto the `ret` behind the call
 *     rbp        the caller's rbp                    a vararg function finds its arguments by rbp
 *     rbp -  8   rax   rbp - 16  rdi   rbp - 24  rsi   rbp - 32  rdx
 *     rbp - 40   rcx   rbp - 48  r8    rbp - 56  r9
 *     rbp - 64   the segment that was taken, or 0: for gort_split_shrink
 *     rbp - 72   the size of the stack arguments
 *
 * Debuggers and the C++ unwinder accept a caller's frame below its callee's from this name only.
 * The frame description says that the function's caller called __morestack. The return address says
 * the function did, from a prologue that no landing pad covers: an exception would be fatal.
 *
 * This object has both notes: it takes care of its stack, so the linker need not send its callers
 * to a large one; and it has functions without a check.
 */
#include "arch/macros.S"

#define LIBC_ROOM 32768

/* Saves rcx already: it takes the room for unchecked code. */
.macro  OPEN_FRAME
        .cfi_def_cfa_offset 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
        subq    $72, %rsp
        movq    %rcx, -40(%rbp)
.endm

/* The linker has found that the function calls code without checks. */
        FUNCTION __morestack_non_split
        OPEN_FRAME
        movl    $LIBC_ROOM, %ecx
        jmp     1f
        END __morestack_non_split

        FUNCTION __morestack
        OPEN_FRAME
        xorl    %ecx, %ecx
1:      movq    %rax, -8(%rbp)
        movq    %rdi, -16(%rbp)
        movq    %rsi, -24(%rbp)
        movq    %rdx, -32(%rbp)
        movq    %r8, -48(%rbp)
        movq    %r9, -56(%rbp)
        movq    %r10, %rdi
        movq    %r11, %rsi
        movq    %rbp, %rdx
        movq    %r11, -72(%rbp)
        call    *gort_split_grow@GOTPCREL(%rip)
        testq   %rax, %rax
        jz      3f
        movq    %rax, %rsp
2:      movq    8(%rbp), %r10
        movq    -8(%rbp), %rax
        movq    -16(%rbp), %rdi
        movq    -24(%rbp), %rsi
        movq    -32(%rbp), %rdx
        movq    -40(%rbp), %rcx
        movq    -48(%rbp), %r8
        movq    -56(%rbp), %r9
        incq    %r10
        call    *%r10
        cmpq    $0, -64(%rbp)
        jne     4f
        leave
        .cfi_remember_state
        .cfi_def_cfa rsp, 16
        ret
        .cfi_restore_state
/* In place, with stack arguments: copies them below our frame, where gort_split_grow's was. */
3:      movq    -72(%rbp), %rcx
        leaq    15(%rcx), %rax
        andq    $-16, %rax
        subq    %rax, %rsp
        leaq    24(%rbp), %rsi
        movq    %rsp, %rdi
        shrq    $3, %rcx
        rep movsq
        jmp     2b
4:      leaq    -72(%rbp), %rsp
        movq    %rax, -8(%rbp)
        movq    %rdx, -16(%rbp)
        movq    -64(%rbp), %rdi
        call    *gort_split_shrink@GOTPCREL(%rip)
        movq    -8(%rbp), %rax
        movq    -16(%rbp), %rdx
        leave
        .cfi_def_cfa rsp, 16
        ret
        END __morestack
        .globl  gort_split_end
        .hidden gort_split_end
gort_split_end:

/* Space of rdi bytes for an alloca or an array of variable size that did not fit. An ordinary call,
 * except that the stack pointer may come back lower (gort_split_space). */
        FUNCTION __morestack_allocate_stack_space
        leaq    8(%rsp), %rsi
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    *gort_split_space@GOTPCREL(%rip)
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        popq    %r11
        .cfi_def_cfa_offset 0
        .cfi_register rip, r11
        subq    %rdx, %rsp
        jmp     *%r11
        END __morestack_allocate_stack_space

/* With -fsplit-stack on the link line the driver redirects pthread_create to libgcc, which would
 * set every thread's guard. The runtime sets that of its own threads; others need none. */
        .globl  __wrap_pthread_create
        .hidden __wrap_pthread_create
        .type   __wrap_pthread_create, @function
        .weak   __real_pthread_create
__wrap_pthread_create:
        jmp     *__real_pthread_create@GOTPCREL(%rip)
        .size   __wrap_pthread_create, .-__wrap_pthread_create

/* A checked function that calls one without: what has the linker made of it? (gort_split_linked) */
        .globl  gort_split_probe
        .hidden gort_split_probe
        .type   gort_split_probe, @function
        .p2align 4
gort_split_probe:
        cmpq    %fs:0x70, %rsp
        jb      4f
3:      subq    $8, %rsp
        call    gort_split_unchecked
        addq    $8, %rsp
        ret
4:      movl    $8, %r10d
        movl    $0, %r11d
        call    __morestack
        ret
        jmp     3b
        .size   gort_split_probe, .-gort_split_probe

        .section .note.GNU-split-stack,"",@progbits
        .section .note.GNU-no-split-stack,"",@progbits