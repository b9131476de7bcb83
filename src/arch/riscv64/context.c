/* riscv64: first frames and signal contexts. */
#define _GNU_SOURCE 1
#include "arch.h"

#include <string.h>
#include <ucontext.h>

void arch_entry(void);

enum { WORDS = 26, RA = 1, S1 = 3, S2 = 4 }; /* words of a saved context: arch.h */

void *arch_first_frame(void *top, void (*entry)(void *), void *arg) {
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15) - WORDS;
    memset(sp, 0, WORDS * sizeof *sp);
    sp[S1] = (uintptr_t)entry;
    sp[S2] = (uintptr_t)arg;
    sp[RA] = (uintptr_t)arch_entry;
    return sp;
}

/* A context's registers are numbered as the processor's, with the pc in the place of x0. */
uintptr_t arch_context_pc(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.__gregs[0]; }
uintptr_t arch_context_sp(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.__gregs[2]; }
long arch_context_result(void *uc) { return (long)((ucontext_t *)uc)->uc_mcontext.__gregs[10]; }
