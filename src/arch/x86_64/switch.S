/*
 * The context switch. Callee-saved registers only: a switch is a call, so the caller has saved
 * the rest.
 *
 * Processors predict a `ret` by a stack of their own of the calls made. A switch that leaves by a
 * jump puts that stack off by one, and then every return up the new goroutine's chain mispredicts.
 * So the body is called, from one place: its `ret` goes back to that place on whichever stack, and
 * is always predicted; the depth stays right; and where both goroutines wait in the same function,
 * the usual case, the returns after it are predicted too. (A yield between two goroutines: 13 ns,
 * 25 with `pop; jmp` at the end.)
 *
 * The floating-point environment travels with the goroutine as <fenv.h> knows it. All of fenv sets
 * the x87 control word and MXCSR alike, and reading the former costs half a nanosecond, the latter
 * four, more than the rest of the switch. So the x87 word is the witness: while it has its default
 * value MXCSR is taken to have its own, and both are loaded only where the two sides differ. What
 * sets MXCSR alone (flush-to-zero intrinsics) belongs to the thread.
 */
#define X87_DEFAULT   0x037f
#define MXCSR_DEFAULT 0x1f80

        .text
        .globl  arch_switch
        .hidden arch_switch
        .type   arch_switch, @function
        .p2align 5
arch_switch:
        .cfi_startproc
        call    1f
        ret
        .cfi_endproc
        .size   arch_switch, .-arch_switch

        .type   switch_body, @function
        .p2align 5
switch_body:
        .cfi_startproc
1:
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        fnstcw  4(%rsp)
        movl    $MXCSR_DEFAULT, (%rsp)
        movzwl  4(%rsp), %ecx
        cmpl    $X87_DEFAULT, %ecx
        jne     2f
5:      movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        cmpw    4(%rsp), %cx
        jne     3f
4:      addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        ret
        .cfi_def_cfa_offset 64
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
        .cfi_offset rip, -8
2:      stmxcsr (%rsp)
        jmp     5b
3:      ldmxcsr (%rsp)
        fldcw   4(%rsp)
        jmp     4b
        .cfi_endproc
        .size   switch_body, .-switch_body

/* Where a first frame's body returns to: as if arch_switch had been called from arch_entry. */
        .globl  arch_switched
        .hidden arch_switched
        .type   arch_switched, @function
arch_switched:
        ret
        .size   arch_switched, .-arch_switched

/* A new goroutine starts here: rbx is its entry, r12 the argument. Marked as the outermost frame,
 * so that a debugger's backtrace ends here. */
        .globl  arch_entry
        .hidden arch_entry
        .type   arch_entry, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop                     /* an unwinder looks up the address before the return address */
arch_entry:
        movq    %r12, %rdi
        xorl    %ebp, %ebp
        callq   *%rbx
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
