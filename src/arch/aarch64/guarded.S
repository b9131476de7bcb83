/*
 * fn(arg) in a frame that an exception does not pass unseen: exception.c.
 */
        .text
        .globl  arch_call_guarded
        .hidden arch_call_guarded
        .hidden guard_personality
        .type   arch_call_guarded, %function
        .p2align 4
arch_call_guarded:
        .cfi_startproc
        .cfi_personality 0x1b, guard_personality
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        mov     x9, x0
        mov     x0, x1
        blr     x9
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   arch_call_guarded, .-arch_call_guarded

        .section .note.GNU-stack,"",%progbits
