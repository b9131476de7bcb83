/* aarch64: registers as DWARF numbers them: x0 ... x30, sp; and 32, the program counter, which has
 * no number there. Return addresses stand in x30's column. */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

enum { UNWIND_FP = 29, UNWIND_SP = 31, UNWIND_RA = 32, UNWIND_REGS = 33 };

/* What a called function leaves alone: x19-x29. */
#define UNWIND_KEPT (((uint64_t)1 << 30) - ((uint64_t)1 << 19))

/* A return address may be signed (pointer authentication): the upper bits are the signature. */
#define UNWIND_STRIP(pc) ((pc) & (((uintptr_t)1 << 48) - 1))

/* A frame record may stand anywhere in its frame: the sp that goes with it is a lower bound. */
#define UNWIND_RECORD_TELLS_SP false

/* Where a call leaves the return address: the register, or UNWIND_SP: on the stack. */
#define UNWIND_LINK 30

/* The frame of a signal handler's trampoline, where no table tells: here tables do. */
#define UNWIND_TRAMPOLINE(r) false

#endif
