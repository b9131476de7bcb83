/* x86-64: first frames and signal contexts. */
#define _GNU_SOURCE 1 /* the names of registers in a ucontext */
#include "arch.h"

#include <sys/auxv.h>
#include <ucontext.h>

void arch_entry(void);

bool arch_fsgsbase;
#define HWCAP2_FSGSBASE 2
__attribute__((constructor)) static void ask_fsgsbase(void) {
    arch_fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
}

void *arch_first_frame(void *top, void (*entry)(void *), void *arg) {
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15);
    *--sp = (uintptr_t)arg;
    *--sp = (uintptr_t)entry;                 /* arch_entry begins with sp here */
    *--sp = 0;                                /* rbp: the end of a chain of frame pointers */
    *--sp = (uintptr_t)arch_entry;            /* where it goes on */
    *--sp = 0x1f80 | (uintptr_t)0x037f << 32; /* mxcsr, x87 control word: the defaults */
    return sp;
}

uintptr_t arch_context_pc(void *uc) {
    return (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
}
uintptr_t arch_context_sp(void *uc) {
    return (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RSP];
}
long arch_context_result(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RAX]; }
