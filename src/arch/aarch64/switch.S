/* The context switch saves x19 to x30, d8 to d15, and x18, which the platform reserves but a
 * compiler without -ffixed-x18 may use. fpcr is written only where the two sides differ. */
#include "arch/macros.S"

        FUNCTION arch_switch, align=5
        sub     sp, sp, #176
        .cfi_def_cfa_offset 176
        mrs     x9, fpcr
        stp     x9, x18, [sp]
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     x29, x30, [sp, #96]
        stp     d8, d9, [sp, #112]
        stp     d10, d11, [sp, #128]
        stp     d12, d13, [sp, #144]
        stp     d14, d15, [sp, #160]
        .cfi_offset x29, -80
        .cfi_offset x30, -72
        mov     x10, sp
        str     x10, [x0]
        mov     sp, x1
        ldp     x10, x18, [sp]
        cmp     x9, x10
        b.ne    2f
1:      ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     x29, x30, [sp, #96]
        ldp     d8, d9, [sp, #112]
        ldp     d10, d11, [sp, #128]
        ldp     d12, d13, [sp, #144]
        ldp     d14, d15, [sp, #160]
        add     sp, sp, #176
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
2:      .cfi_def_cfa_offset 176
        .cfi_offset x29, -80
        .cfi_offset x30, -72
        msr     fpcr, x10
        b       1b
        END arch_switch

/* A new goroutine starts here: x19 is its entry, x20 the argument. */
        OUTERMOST arch_entry, x30
        mov     x0, x20
        mov     x29, xzr
        mov     x30, xzr
        blr     x19
        brk     #1
        END arch_entry

        FUNCTION arch_call_on
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        and     x9, x0, #-16
        mov     sp, x9
        mov     x0, x2
        blr     x1
        mov     sp, x29
        .cfi_def_cfa sp, 16
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        ret
        END arch_call_on
