/* aarch64: first frames and signal contexts. */
#define _GNU_SOURCE 1
#include "arch.h"

#include <string.h>
#include <ucontext.h>

void arch_entry(void);

void *arch_first_frame(void *top, void (*entry)(void *), void *arg) {
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15) - 22;
    memset(sp, 0, 22 * sizeof *sp);
    sp[2] = (uintptr_t)entry;       /* x19 */
    sp[3] = (uintptr_t)arg;         /* x20 */
    sp[13] = (uintptr_t)arch_entry; /* x30 */
    return sp;
}

uintptr_t arch_context_pc(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.pc; }
uintptr_t arch_context_sp(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.sp; }
long arch_context_result(void *uc) { return (long)((ucontext_t *)uc)->uc_mcontext.regs[0]; }
