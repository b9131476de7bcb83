/*
 * Where a call of libc returns whose goroutine is to stop: inlibc.c replaced the return address on
 * the stack by one of these entries. Each belongs to one of arch_trap_records, whose first word is
 * the true address. Results of the call (rax, rdx, xmm0, xmm1, x87) are kept.
 *
 * Every unwinder sees through a trap, since a function that libc calls back may throw: the distance
 * to its record stands before an entry, and by the entry's table the return address is there.
 *
 *      breg16 - 9      rip is the entry; the distance stands 9 bytes before it
 *      the same, deref, plus   the address of the record
 *
 * valgrind does not know dup, and says so to whoever runs a program under it.
 *
 * The CFA is one byte off the stack pointer on purpose: libgcc tells frames apart by their CFA, and
 * the frame that catches must not look like the entry, which has none of its own.
 */
#include "arch.h"
#include "arch/macros.S"

        .hidden arch_trap_records
        FUNCTION arch_return_traps
        .cfi_def_cfa rsp, 1
        .cfi_escape 0x16, 7, 2, 0x77, 0                         /* rsp: as it is */
        .cfi_escape 0x10, 16, 6, 0x80, 0x77, 0x80, 0x77, 0x06, 0x22 /* rip: in the record */
        .set    .Lrecord, 0
        .rept   ARCH_RETURN_TRAPS
        .quad   arch_trap_records + .Lrecord - .
        nop                     /* an unwinder looks up the address before the return address */
        jmp     1f              /* the entry */
        .p2align 4
        .set    .Lrecord, .Lrecord + 16
        .endr
        END arch_return_traps

        .type   arch_trapped, @function
arch_trapped:
        .cfi_startproc
        .cfi_def_cfa rsp, 0
1:      subq    $8, %rsp        /* the place of the return address, where the entry still stands */
        .cfi_def_cfa_offset 8
        PUSH_FRAME
        pushq   %rax
        pushq   %rdx
        subq    $512, %rsp
        andq    $-16, %rsp
        fxsave64 (%rsp)
        movq    %rbp, %rdi      /* the caller's rbp, the entry, and behind it the caller's sp */
        callq   *arch_trap_left(%rip) /* inlibc.c: the entry becomes the true address */
        fxrstor64 (%rsp)
        movq    -8(%rbp), %rax
        movq    -16(%rbp), %rdx
        leave
        .cfi_def_cfa rsp, 8
        ret
        END arch_trapped

        .bss
        .globl  arch_trap_records, arch_trap_left
        .hidden arch_trap_left
        .p2align 4
arch_trap_records:
        .zero   16 * ARCH_RETURN_TRAPS
arch_trap_left:
        .zero   8
