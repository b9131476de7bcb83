/*
 * x86-64: first frames and signal contexts.
 */
#define _GNU_SOURCE 1 /* the names of registers in a ucontext */
#include "arch.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

void arch_entry(void);

void *arch_first_frame(void *top, void (*entry)(void *), void *arg) {
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15);
    *--sp = (uintptr_t)arg;
    *--sp = (uintptr_t)entry;      /* arch_entry begins with sp here */
    *--sp = 0;                     /* rbp: the end of a chain of frame pointers */
    *--sp = (uintptr_t)arch_entry; /* where it goes on */
    *--sp = 0x1f80 | (uintptr_t)0x037f << 32; /* mxcsr, x87 control word: the defaults */
    return sp;
}

uintptr_t arch_context_pc(void *uc) { return (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP]; }
uintptr_t arch_context_sp(void *uc) { return (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RSP]; }
uintptr_t arch_context_fp(void *uc) { return (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RBP]; }

void arch_repair_eintr(void *uc) {
    greg_t *r = ((ucontext_t *)uc)->uc_mcontext.gregs;
    if (r[REG_RAX] != -EINTR) return;
    const unsigned char *pc = (const unsigned char *)r[REG_RIP];
    if (pc[-2] != 0x0f || pc[-1] != 0x05) return; /* syscall */
    /* The number was loaded by `mov $nr, %eax` just before, or it is still known: rcx and r11
     * are the kernel's, so the number has to come from the code. */
    if (pc[-7] != 0xb8) return;
    int nr;
    memcpy(&nr, pc - 6, sizeof nr);
    if (nr == SYS_close) return; /* the descriptor is gone, its number may be another's by now */
    r[REG_RIP] = (greg_t)(pc - 7);
}
