/*
 * Making an interrupted system call again, where the kernel has overwritten its first argument.
 *
 * The preemption signal can land just as a thread goes to sleep in poll() or nanosleep(), and such
 * calls return EINTR whatever SA_RESTART says. The program did not ask for the signal, so the
 * handler sends the thread back to the instruction that enters the kernel. On x86-64 that is all.
 * Elsewhere the result has replaced the first argument, in the signal's context too.
 *
 * The code still has it: a function that makes a sleeping system call keeps its arguments (for
 * glibc's cancellation), so its last write to the register is a copy.
 *
 *      mov  x0, x21         mv   a0, s0
 *      mov  x2, x22         li   a4, 8
 *      mov  x8, #73         li   a7, 73
 *      svc  #0              ecall
 *
 * The repair decodes the function from its start (unwind tables or symbols tell it; riscv64's
 * instructions have two lengths) to the call, and takes the last copy into the register if nothing
 * after it writes either register and no branch leads between the copy and the call. An unknown
 * function or instruction or an indirect jump leaves the EINTR as it is: a wrong argument would be
 * far worse. close() is never made again: its descriptor may already be reused.
 *
 * A port that needs it defines PC(mc), REG(mc, n), the registers FIRST (argument), NUMBER (of the
 * call) and ZERO, and the instruction CALL; includes this file; and defines insn_decode().
 */
#ifndef EINTR_REPAIR_H
#define EINTR_REPAIR_H

#include "arch.h"
#include "unwind/symbols.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* What the repair has to know of an instruction. */
typedef struct Insn {
    unsigned length;
    uint32_t writes;  /* general registers it may write, a bit each */
    int copy_of;      /* the register copied into the first argument's; -1: none */
    bool narrow;      /* the copy is of the lower 32 bits */
    bool opaque;      /* a call, a system call, unknown: nothing is known after it */
    bool indirect;    /* jumps through a register */
    uintptr_t target; /* of a branch; 0: none */
} Insn;

static Insn insn_decode(uintptr_t at);

/* For decoders: n bits of w from bit `at` on; an n-bit number, sign-extended. */
static uint32_t bits(uint32_t w, int at, int n) { return w >> at & ((1u << n) - 1); }
static int64_t sign(uint64_t v, int n) { return (int64_t)(v << (64 - n)) >> (64 - n); }

typedef struct Copy {
    uintptr_t at; /* 0: there is none */
    int from;
    bool narrow;
} Copy;

/* The copy in force when straight-line execution from `start` reaches the call. */
static Copy last_copy(uintptr_t start, uintptr_t call) {
    Copy c = {0};
    uintptr_t at = start;
    while (at < call) {
        Insn i = insn_decode(at);
        if (i.copy_of >= 0) c = (Copy){at, i.copy_of, i.narrow};
        else if (c.at &&
                 (i.opaque || i.indirect || (i.writes >> FIRST & 1) || (i.writes >> c.from & 1)))
            c.at = 0;
        at += i.length;
    }
    return at == call ? c : (Copy){0};
}

/* No branch of the function leads between the copy and the call. */
static bool straight(uintptr_t start, uintptr_t end, uintptr_t copy, uintptr_t call) {
    for (uintptr_t at = start; at < end;) {
        Insn i = insn_decode(at);
        if (i.indirect || (i.target > copy && i.target <= call)) return false;
        at += i.length;
    }
    return true;
}

static bool function_of(uintptr_t pc, uintptr_t *start, uintptr_t *size) {
    if (cfi_function(pc, start, size)) return true;
    Named n = symbol_of(pc);
    *start = pc - n.offset;
    *size = n.size;
    return n.name && n.size;
}

/* The register that still holds the first argument of the system call at `call`. */
static bool first_argument(uintptr_t call, Copy *c) {
    uintptr_t start, size;
    if (!function_of(call, &start, &size)) return false;
    *c = last_copy(start, call);
    return c->at && straight(start, start + size, c->at, call);
}

static void repair_by_copy(void *uc) {
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    uintptr_t call = PC(mc) - sizeof(uint32_t), v;
    uint32_t w;
    Copy c;
    if ((long)REG(mc, FIRST) != -EINTR || REG(mc, NUMBER) == SYS_close) return;
    if (!read_memory(call, &w, sizeof w) || w != CALL || !first_argument(call, &c)) return;
    v = c.from == ZERO ? 0 : REG(mc, c.from);
    REG(mc, FIRST) = c.narrow ? (uint32_t)v : v;
    PC(mc) = call;
}

static long number_at_call(void *uc) {
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    return (long)REG(mc, NUMBER);
}

static void end_at_call(void *uc) {
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    uint32_t w;
    memcpy(&w, (void *)PC(mc), sizeof w);
    if (w != CALL) return;
    REG(mc, FIRST) = (unsigned long)-EINTR;
    PC(mc) += sizeof w;
}

#endif
