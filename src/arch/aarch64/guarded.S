/* fn(arg) in a frame that an exception does not pass unseen: exception.c. */
#include "arch/macros.S"

        .hidden guard_personality
        FUNCTION arch_call_guarded
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
        END arch_call_guarded
