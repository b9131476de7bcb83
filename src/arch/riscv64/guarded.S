/*
 * fn(arg) in a frame that an exception does not pass unseen: exception.c.
 */
        .text
        .globl  arch_call_guarded
        .hidden arch_call_guarded
        .hidden guard_personality
        .type   arch_call_guarded, @function
        .p2align 2
arch_call_guarded:
        .cfi_startproc
        .cfi_personality 0x1b, guard_personality
        addi    sp, sp, -16
        .cfi_def_cfa_offset 16
        sd      ra, 8(sp)
        sd      s0, 0(sp)
        .cfi_offset ra, -8
        .cfi_offset s0, -16
        addi    s0, sp, 16
        mv      t1, a0
        mv      a0, a1
        jalr    t1
        ld      ra, 8(sp)
        ld      s0, 0(sp)
        .cfi_restore ra
        .cfi_restore s0
        addi    sp, sp, 16
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   arch_call_guarded, .-arch_call_guarded

        .section .note.GNU-stack,"",@progbits
