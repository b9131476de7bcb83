/* fn(arg) in a frame that an exception does not pass unseen: exception.c. */
#include "arch/macros.S"

        .hidden guard_personality
        FUNCTION arch_call_guarded
        .cfi_personality 0x1b, guard_personality
        PUSH_FRAME
        movq    %rdi, %rax
        movq    %rsi, %rdi
        callq   *%rax
        popq    %rbp
        .cfi_def_cfa rsp, 8
        ret
        END arch_call_guarded
