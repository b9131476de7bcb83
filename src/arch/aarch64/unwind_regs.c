/* aarch64: where a backtrace starts (unwind_arch.h has the numbers). */
#include "unwind/unwind.h"

#include <ucontext.h>

enum { X19 = 19, X29 = 29, X30 = 30, WORDS = 22 };

/* The layout is arch_switch's: fpcr, x18 | x19 ... x28 | x29, x30 | d8 ... d15. */
void regs_saved(Regs *r, void *sp) {
    uintptr_t at[WORDS];
    *r = (Regs){.known = 0};
    if (!read_memory((uintptr_t)sp, at, sizeof at)) return;
    for (int i = X19; i <= X29; i++) regs_put(r, i, at[i - X19 + 2]);
    regs_put(r, UNWIND_RA, UNWIND_STRIP(at[13]));
    regs_put(r, UNWIND_SP, (uintptr_t)sp + sizeof at);
}

void regs_context(Regs *r, void *uc) {
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    *r = (Regs){.exact = true};
    for (int i = 0; i <= X30; i++) regs_put(r, i, (uintptr_t)mc->regs[i]);
    regs_put(r, UNWIND_SP, (uintptr_t)mc->sp);
    regs_put(r, UNWIND_RA, (uintptr_t)mc->pc);
}
