/* riscv64: where a backtrace starts (numbers: unwind_arch.h). A frame pointer is the caller's sp;
 * the caller's frame pointer and the return address stand just below it: a record tells all. */
#include "unwind/unwind.h"

#include <ucontext.h>

enum { S0 = 8, S1 = 9, S2 = 18, S11 = 27, WORDS = 26 };

/* The layout is arch_switch's: fcsr, ra | s0 ... s11 | fs0 ... fs11. */
void regs_saved(Regs *r, void *sp) {
    uintptr_t at[WORDS];
    *r = (Regs){.known = 0};
    if (!read_memory((uintptr_t)sp, at, sizeof at)) return;
    regs_put(r, S0, at[2]);
    regs_put(r, S1, at[3]);
    for (int i = S2; i <= S11; i++) regs_put(r, i, at[4 + i - S2]);
    regs_put(r, UNWIND_RA, at[1]);
    regs_put(r, UNWIND_SP, (uintptr_t)sp + sizeof at);
}

/* A context's first word is the pc, where x0 would stand. */
static void regs_words(Regs *r, const unsigned long *gregs) {
    *r = (Regs){.exact = true};
    regs_put(r, 0, 0);
    for (int i = 1; i < 32; i++) regs_put(r, i, gregs[i]);
    regs_put(r, UNWIND_RA, gregs[0]);
}

void regs_context(Regs *r, void *uc) { regs_words(r, ((ucontext_t *)uc)->uc_mcontext.__gregs); }

/* A handler returns to kernel code without tables: `li a7, 139 (rt_sigreturn); ecall`. Its sp
 * points to what the kernel pushed: a siginfo of 128 bytes, then the context. */
bool regs_trampoline(Regs *r) {
    static const uint32_t code[2] = {0x08b00893, 0x00000073};
    uint32_t at[2];
    unsigned long gregs[32];
    uintptr_t context = r->reg[UNWIND_SP] + 128;
    if (!read_memory(r->reg[UNWIND_RA], at, sizeof at) || memcmp(at, code, sizeof at) != 0)
        return false;
    if (!(r->known >> UNWIND_SP & 1) ||
        !read_memory(context + offsetof(ucontext_t, uc_mcontext), gregs, sizeof gregs))
        return false;
    regs_words(r, gregs);
    return true;
}
