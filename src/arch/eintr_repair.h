/*
 * Making an interrupted system call again, where the kernel has lost its first argument.
 *
 * The preemption signal can land just as a thread goes to sleep in poll() or nanosleep(), and such
 * calls return EINTR whatever SA_RESTART says. The program did not ask for the signal, so the
 * handler repairs it (PREEMPTION.md, rule 2): it sends the thread back to the instruction that
 * enters the kernel. On x86-64 that is all. Here the result has replaced the first argument in its
 * register, and a signal's context does not keep it.
 *
 * But the code does. A function that makes a system call that may sleep has to keep its arguments
 * over what it does before (glibc's cancellation), so the last thing it does to the register is a
 * copy from one where the argument still stands:
 *
 *      mov  x0, x21         mv   a0, s0
 *      mov  x2, x22         li   a4, 8
 *      mov  x8, #73         li   a7, 73
 *      svc  #0              ecall
 *
 * So the function is decoded from its first instruction (the unwind tables know it, or the symbols,
 * and it has to be the first one: on riscv64 instructions have two lengths) up to the call, and the
 * last copy into the register is taken, provided that nothing after it writes either register. A
 * second pass over the whole function sees that no branch leads between the copy and the call,
 * since then the copy would tell nothing. Whatever is not understood, an indirect jump or a
 * function nobody knows, leaves the EINTR as it is: a wrong argument would be far worse.
 *
 * close() is never made again: the descriptor is gone, and its number may be another's by now.
 *
 * Included once per architecture, which gives decode().
 */
#ifndef AGAIN_H
#define AGAIN_H

#include "unwind/symbols.h"
#include "unwind/unwind.h"

#include <sys/syscall.h>

/* What the repair has to know of an instruction. */
typedef struct Insn {
    unsigned length;
    uint32_t writes; /* general registers it may write, a bit each */
    /* it is a copy of this register into that of the first argument; -1: it is not */
    int copy_of;
    bool narrow;      /* of its lower 32 bits */
    bool opaque;      /* calls, system calls, what is not known: nothing is known after it */
    bool indirect;    /* jumps to where a register says */
    uintptr_t target; /* of a branch; 0: none */
} Insn;

static Insn decode(uintptr_t at);

/* For decoders: bits of an instruction, and a number of so many bits as a signed one. */
static uint32_t field(uint32_t w, int at, int bits) { return w >> at & ((1u << bits) - 1); }
static int64_t sign(uint64_t v, int bits) { return (int64_t)(v << (64 - bits)) >> (64 - bits); }

typedef struct Copy {
    uintptr_t at; /* 0: there is none */
    int from;
    bool narrow;
} Copy;

/* The copy that stands when the call at `call` is reached in a straight line. */
static Copy last_copy(uintptr_t start, uintptr_t call, int first) {
    Copy c = {0};
    uintptr_t at = start;
    while (at < call) {
        Insn i = decode(at);
        if (i.copy_of >= 0) c = (Copy){at, i.copy_of, i.narrow};
        else if (c.at &&
                 (i.opaque || i.indirect || (i.writes >> first & 1) || (i.writes >> c.from & 1)))
            c.at = 0;
        at += i.length;
    }
    return at == call ? c : (Copy){0};
}

/* No branch of the function leads behind the copy and before the kernel's entry. */
static bool straight(uintptr_t start, uintptr_t end, uintptr_t copy, uintptr_t call) {
    for (uintptr_t at = start; at < end;) {
        Insn i = decode(at);
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

/* Which register still holds the first argument of the system call made at `call`. */
static bool first_argument(uintptr_t call, int first, Copy *c) {
    uintptr_t start, size;
    if (!function_of(call, &start, &size)) return false;
    *c = last_copy(start, call, first);
    return c->at && straight(start, start + size, c->at, call);
}

#endif
