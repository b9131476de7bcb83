/*
 * x86-64: where a backtrace starts, in DWARF's numbering of registers (unwind_arch.h).
 */
#include "unwind.h"
#include "arch.h"

#include <ucontext.h>

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, R15, RIP };

static void put(Regs *r, int reg, uintptr_t value) {
    r->reg[reg] = value;
    r->known |= (uint64_t)1 << reg;
}

/* The layout is arch_switch's: control words, r15, r14, r13, r12, rbx, rbp, the return into
 * arch_switch itself, its return address. */
void regs_saved(Regs *r, void *sp) {
    uintptr_t at[9];
    *r = (Regs){.known = 0};
    if (!read_memory((uintptr_t)sp, at, sizeof at)) return;
    put(r, R15, at[1]);
    put(r, R14, at[2]);
    put(r, R13, at[3]);
    put(r, R12, at[4]);
    put(r, RBX, at[5]);
    put(r, RBP, at[6]);
    put(r, RIP, at[8]);
    put(r, RSP, (uintptr_t)sp + sizeof at);
}

void regs_at(Regs *r, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
    *r = (Regs){.known = 0};
    put(r, RIP, pc);
    put(r, RSP, sp);
    put(r, RBP, fp);
}

/* A function with a frame pointer: caller's rbp at fp, return address above it. Its other
 * registers are unknown. */
void regs_frame(Regs *r, uintptr_t fp) {
    uintptr_t at[2];
    *r = (Regs){.known = 0};
    if (read_memory(fp, at, sizeof at)) regs_at(r, at[1], fp + sizeof at, at[0]);
}

void regs_context(Regs *r, void *uc) {
    static const int order[UNWIND_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                           REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                           REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    *r = (Regs){.exact = true};
    for (int i = 0; i < UNWIND_REGS; i++)
        put(r, i, (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[order[i]]);
}
