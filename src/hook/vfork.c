/*
 * vfork, and clone with the parent's memory and its thread standing still.
 *
 * Such a child has the parent's memory and thread-locals, and descriptors of its own. What it does
 * with those before its execve does not concern the runtime, and a call of it that waits must not
 * run the parent's goroutines. So while the child runs, its thread looks to the hook as one without
 * goroutines (vfork_begin): every function is libc's. Plain threads ask vforked() before they note.
 *
 * vfork returns twice into one frame, so its return address may not stay on the stack, where the
 * child's next call overwrites it: a few instructions of each processor, as in libc's own.
 */
#include "hook/hook_internal.h"

#include <stdarg.h>

static __attribute__((used)) void vfork_begins(void) {
    if (core) core->vfork_begin();
}

/* The parent goes on. r: -errno or the child. */
static __attribute__((used)) pid_t vfork_ends(long r) {
    if (core) core->vfork_end();
    return (pid_t)returned(r);
}

#define BEGIN                                              \
    ".pushsection .text\n.p2align 4\n.globl vfork\n.type " \
    "vfork,%function\nvfork:\n\t.cfi_startproc\n\t"
#define END "\n\t.cfi_endproc\n.size vfork,.-vfork\n.popsection"

#if defined(__x86_64__)
_Static_assert(SYS_vfork == 58, "");
__asm__(BEGIN "subq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall vfork_begins\n\taddq $8, "
              "%rsp\n\t.cfi_adjust_cfa_offset -8\n\t"
              "popq %rdi\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_register %rip, %rdi\n\t"
              "movl $58, %eax\n\tsyscall\n\t"
              "pushq %rdi\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset %rip, -8\n\t"
              "testq %rax, %rax\n\tje 1f\n\tmovq %rax, %rdi\n\tjmp vfork_ends\n1:\tret" END);
#elif defined(__aarch64__)
_Static_assert(SYS_clone == 220 && (CLONE_VM | CLONE_VFORK | SIGCHLD) == 0x4111, "");
__asm__(
    BEGIN
    "stp x29, x30, [sp, -16]!\n\t.cfi_adjust_cfa_offset 16\n\t.cfi_rel_offset x30, 8\n\tbl "
    "vfork_begins\n\t"
    "ldp x29, x30, [sp], 16\n\t.cfi_adjust_cfa_offset -16\n\t.cfi_restore x30\n\t"
    "mov x0, 0x4111\n\tmov x1, 0\n\tmov x2, 0\n\tmov x3, 0\n\tmov x4, 0\n\tmov x8, 220\n\tsvc 0\n\t"
    "cbz x0, 1f\n\tb vfork_ends\n1:\tret" END);
#elif defined(__riscv)
_Static_assert(SYS_clone == 220 && (CLONE_VM | CLONE_VFORK | SIGCHLD) == 0x4111, "");
__asm__(BEGIN
        "addi sp, sp, -16\n\t.cfi_adjust_cfa_offset 16\n\tsd ra, 8(sp)\n\t.cfi_rel_offset ra, "
        "8\n\tcall vfork_begins\n\t"
        "ld ra, 8(sp)\n\taddi sp, sp, 16\n\t.cfi_adjust_cfa_offset -16\n\t.cfi_restore ra\n\t"
        "li a0, 0x4111\n\tli a1, 0\n\tli a2, 0\n\tli a3, 0\n\tli a4, 0\n\tli a7, 220\n\tecall\n\t"
        "beqz a0, 1f\n\ttail vfork_ends\n1:\tret" END);
#else
#error "vfork: a few instructions of this processor"
#endif

/* The child has a stack of its own, so C will do. A child that runs beside its maker, with its
 * thread-locals, is noticed where it would park. */
HOOK int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...) {
    va_list more;
    va_start(more, arg); /* as libc: three, given or not */
    pid_t *parent = va_arg(more, pid_t *);
    void *tls = va_arg(more, void *);
    pid_t *child = va_arg(more, pid_t *);
    va_end(more);
    bool shares = (flags & CLONE_VM) && (flags & CLONE_VFORK) && !(flags & CLONE_SETTLS);
    if (shares) vfork_begins();
    int r = libc(clone)(fn, stack, flags, arg, parent, tls, child);
    if (shares && core) core->vfork_end();
    return r;
}
