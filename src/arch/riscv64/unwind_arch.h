/* riscv64: registers as DWARF numbers them: x0 ... x31; and 32, the program counter, which has no
 * number there (DWARF's 32 is ft0, which no call keeps). Return addresses stand in x1's column. */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

enum { UNWIND_FP = 8, UNWIND_SP = 2, UNWIND_RA = 32, UNWIND_REGS = 33 };

/* What a called function leaves alone: s0, s1 (x8, x9) and s2-s11 (x18-x27). */
#define UNWIND_KEPT ((uint64_t)3 << 8 | (uint64_t)0x3ff << 18)
#define UNWIND_STRIP(pc) (pc) /* return addresses are plain here */

#define UNWIND_RECORD_TELLS_SP true

/* Where a call leaves the return address: the register, or UNWIND_SP: on the stack. */
#define UNWIND_LINK 1

/* The frame of a signal handler's trampoline, where no table tells (unwind_regs.c). */
struct Regs;
bool regs_trampoline(struct Regs *r);
#define UNWIND_TRAMPOLINE(r) regs_trampoline(r)

#endif
