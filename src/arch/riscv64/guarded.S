/* fn(arg) in a frame that an exception does not pass unseen: exception.c. */
#include "arch/macros.S"

        .hidden guard_personality
        FUNCTION arch_call_guarded, align=2
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
        END arch_call_guarded
