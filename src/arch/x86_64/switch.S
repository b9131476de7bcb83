/* Where a goroutine begins, and a call on another stack. The switch itself is in arch.h. */
#include "arch/macros.S"

/* A new goroutine starts here, with its entry and the argument on top of the stack. */
        OUTERMOST arch_entry, rip
        movq    8(%rsp), %rdi
        callq   *(%rsp)
        ud2
        END arch_entry

        FUNCTION arch_call_on
        PUSH_FRAME
        movq    %rdi, %rsp
        andq    $-16, %rsp
        movq    %rdx, %rdi
        callq   *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa rsp, 8
        ret
        END arch_call_on
