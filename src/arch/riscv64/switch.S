/* The context switch saves ra, s0 to s11, fs0 to fs11, and fcsr (the rounding mode and flags of
 * <fenv.h>), which is written only where the two sides differ. It ends in `ret`, which a processor
 * predicts by its stack of calls: right where both goroutines wait in the same function. */
#include "arch/macros.S"

#define SIZE    (26 * 8)
#define S_AT    16      /* s0, in a saved context */
#define FS_AT   112     /* fs0 */
#define NUMBERS 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11

.macro  SAVE reg, at
        sd      \reg, \at(sp)
        .cfi_offset \reg, \at - SIZE
.endm

        FUNCTION arch_switch
        addi    sp, sp, -SIZE
        .cfi_def_cfa_offset SIZE
        frcsr   t0
        sd      t0, 0(sp)
        SAVE    ra, 8
        .irp    n, NUMBERS
        SAVE    s\n, S_AT + 8 * \n
        .endr
        .irp    n, NUMBERS
        fsd     fs\n, FS_AT + 8 * \n(sp)
        .endr
        sd      sp, 0(a0)
        mv      sp, a1
        ld      t1, 0(sp)
        bne     t0, t1, 2f
1:      ld      ra, 8(sp)
        .irp    n, NUMBERS
        ld      s\n, S_AT + 8 * \n(sp)
        fld     fs\n, FS_AT + 8 * \n(sp)
        .endr
        addi    sp, sp, SIZE
        .cfi_remember_state
        .cfi_def_cfa_offset 0
        .cfi_restore ra
        .irp    n, NUMBERS
        .cfi_restore s\n
        .endr
        ret
        .cfi_restore_state
2:      fscsr   t1
        j       1b
        END arch_switch

/* A new goroutine starts here: s1 is its entry, s2 the argument. */
        OUTERMOST arch_entry, ra, align=2
        mv      a0, s2
        li      s0, 0
        li      ra, 0
        jalr    s1
        ebreak
        END arch_entry

        FUNCTION arch_call_on, align=2
        addi    sp, sp, -16
        .cfi_def_cfa_offset 16
        sd      ra, 8(sp)
        sd      s0, 0(sp)
        .cfi_offset ra, -8
        .cfi_offset s0, -16
        addi    s0, sp, 16
        .cfi_def_cfa s0, 0
        andi    sp, a0, -16
        mv      a0, a2
        jalr    a1
        addi    sp, s0, -16
        .cfi_def_cfa sp, 16
        ld      ra, 8(sp)
        ld      s0, 0(sp)
        .cfi_restore ra
        .cfi_restore s0
        addi    sp, sp, 16
        .cfi_def_cfa_offset 0
        ret
        END arch_call_on
