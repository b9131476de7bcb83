/* x86-64: registers as DWARF numbers them:
 * rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15, and 16, the return address. */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

enum { UNWIND_FP = 6, UNWIND_SP = 7, UNWIND_RA = 16, UNWIND_REGS = 17 };

/* What a called function leaves alone: rbx rbp r12-r15. */
#define UNWIND_KEPT ((uint64_t)(1u << 3 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15))
#define UNWIND_STRIP(pc) (pc) /* return addresses are plain here */

#define UNWIND_RECORD_TELLS_SP true

/* Where a call leaves the return address: the register, or UNWIND_SP: on the stack. */
#define UNWIND_LINK UNWIND_SP

/* The frame of a signal handler's trampoline, where no table tells: here tables do. */
#define UNWIND_TRAMPOLINE(r) false

#endif
