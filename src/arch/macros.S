/* What every function in assembler begins and ends with; and no stack need be executable. */
.macro  SYMBOL name, align
        .globl  \name
        .hidden \name
        .type   \name, %function
        .p2align \align
.endm

.macro  FUNCTION name, align=4
        SYMBOL  \name, \align
\name:
        .cfi_startproc
.endm

/* Where a goroutine starts: marked as the outermost frame, where a debugger's backtrace ends. The
 * nop is there since an unwinder looks up the address before the return address. */
.macro  OUTERMOST name, return_address, align=4
        SYMBOL  \name, \align
        .cfi_startproc
        .cfi_undefined \return_address
        nop
\name:
.endm

.macro  END name
        .cfi_endproc
        .size   \name, .-\name
.endm

#ifdef __x86_64__
.macro  PUSH_FRAME
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register rbp
.endm
#endif

        .section .note.GNU-stack,"",%progbits
        .text
