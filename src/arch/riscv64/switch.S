/*
 * The context switch saves ra, s0 to s11, fs0 to fs11, and fcsr (the rounding mode and flags of
 * <fenv.h>), which is written only where the two sides differ.
 *
 * It ends in `ret`, which a processor predicts by its stack of calls: right where both goroutines
 * wait in the same function, the usual case. It undoes the call of arch_switch, so the depth of
 * that stack stays right.
 */
#define WORDS 26
#define SIZE  (WORDS * 8)

        .text
        .globl  arch_switch
        .hidden arch_switch
        .type   arch_switch, @function
        .p2align 4
arch_switch:
        .cfi_startproc
        addi    sp, sp, -SIZE
        .cfi_def_cfa_offset SIZE
        frcsr   t0
        sd      t0, 0(sp)
        sd      ra, 8(sp)
        .cfi_offset ra, 8-SIZE
        sd      s0, 16(sp)
        .cfi_offset s0, 16-SIZE
        sd      s1, 24(sp)
        .cfi_offset s1, 24-SIZE
        sd      s2, 32(sp)
        .cfi_offset s2, 32-SIZE
        sd      s3, 40(sp)
        .cfi_offset s3, 40-SIZE
        sd      s4, 48(sp)
        .cfi_offset s4, 48-SIZE
        sd      s5, 56(sp)
        .cfi_offset s5, 56-SIZE
        sd      s6, 64(sp)
        .cfi_offset s6, 64-SIZE
        sd      s7, 72(sp)
        .cfi_offset s7, 72-SIZE
        sd      s8, 80(sp)
        .cfi_offset s8, 80-SIZE
        sd      s9, 88(sp)
        .cfi_offset s9, 88-SIZE
        sd      s10, 96(sp)
        .cfi_offset s10, 96-SIZE
        sd      s11, 104(sp)
        .cfi_offset s11, 104-SIZE
        fsd     fs0, 112(sp)
        fsd     fs1, 120(sp)
        fsd     fs2, 128(sp)
        fsd     fs3, 136(sp)
        fsd     fs4, 144(sp)
        fsd     fs5, 152(sp)
        fsd     fs6, 160(sp)
        fsd     fs7, 168(sp)
        fsd     fs8, 176(sp)
        fsd     fs9, 184(sp)
        fsd     fs10, 192(sp)
        fsd     fs11, 200(sp)
        sd      sp, 0(a0)
        mv      sp, a1
        ld      t1, 0(sp)
        bne     t0, t1, 2f
1:      ld      ra, 8(sp)
        ld      s0, 16(sp)
        ld      s1, 24(sp)
        ld      s2, 32(sp)
        ld      s3, 40(sp)
        ld      s4, 48(sp)
        ld      s5, 56(sp)
        ld      s6, 64(sp)
        ld      s7, 72(sp)
        ld      s8, 80(sp)
        ld      s9, 88(sp)
        ld      s10, 96(sp)
        ld      s11, 104(sp)
        fld     fs0, 112(sp)
        fld     fs1, 120(sp)
        fld     fs2, 128(sp)
        fld     fs3, 136(sp)
        fld     fs4, 144(sp)
        fld     fs5, 152(sp)
        fld     fs6, 160(sp)
        fld     fs7, 168(sp)
        fld     fs8, 176(sp)
        fld     fs9, 184(sp)
        fld     fs10, 192(sp)
        fld     fs11, 200(sp)
        addi    sp, sp, SIZE
        .cfi_remember_state
        .cfi_def_cfa_offset 0
        .cfi_restore ra
        .cfi_restore s0
        .cfi_restore s1
        .cfi_restore s2
        .cfi_restore s3
        .cfi_restore s4
        .cfi_restore s5
        .cfi_restore s6
        .cfi_restore s7
        .cfi_restore s8
        .cfi_restore s9
        .cfi_restore s10
        .cfi_restore s11
        ret
        .cfi_restore_state
2:      fscsr   t1
        j       1b
        .cfi_endproc
        .size   arch_switch, .-arch_switch

/* A new goroutine starts here: s1 is its entry, s2 the argument; the outermost frame. */
        .globl  arch_entry
        .hidden arch_entry
        .type   arch_entry, @function
        .p2align 2
        .cfi_startproc
        .cfi_undefined ra
        nop                     /* an unwinder looks up the address before the return address */
arch_entry:
        mv      a0, s2
        li      s0, 0
        li      ra, 0
        jalr    s1
        ebreak
        .cfi_endproc
        .size   arch_entry, .-arch_entry

        .globl  arch_call_on
        .hidden arch_call_on
        .type   arch_call_on, @function
        .p2align 2
arch_call_on:
        .cfi_startproc
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
        .cfi_endproc
        .size   arch_call_on, .-arch_call_on

        .section .note.GNU-stack,"",@progbits
