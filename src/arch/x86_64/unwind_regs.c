/* x86-64: where a backtrace starts, in DWARF's numbering of registers (unwind_arch.h). */
#include "unwind/unwind.h"

#include <ucontext.h>

/* The layout is arch_switch's: control words, where it goes on, rbp. The other registers are in the
 * frame of the function that switched, as its table tells. */
void regs_saved(Regs *r, void *sp) {
    uintptr_t at[3];
    *r = (Regs){.known = 0};
    if (read_memory((uintptr_t)sp, at, sizeof at))
        regs_at(r, at[1], (uintptr_t)sp + sizeof at, at[2]);
}

void regs_context(Regs *r, void *uc) {
    static const int order[UNWIND_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                           REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                           REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    *r = (Regs){.exact = true};
    for (int i = 0; i < UNWIND_REGS; i++)
        regs_put(r, i, (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[order[i]]);
}
