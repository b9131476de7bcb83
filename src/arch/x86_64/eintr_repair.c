/* x86-64: a thread makes again the system call that our signal has interrupted. */
#define _GNU_SOURCE 1 /* the names of registers in a ucontext */
#include "arch.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* The length of a `mov disp8(%rsp), %reg`, where reg is not rax; 0: it is something else. */
static int load_length(const unsigned char *at) {
    int rex = (at[0] & 0xf0) == 0x40;
    const unsigned char *op = at + rex;
    bool from_stack = op[0] == 0x8b && (op[1] & 0xc7) == 0x44 && op[2] == 0x24;
    bool into_rax = (op[1] & 0x38) == 0 && !(rex && (at[0] & 4));
    return from_stack && !into_rax ? rex + 4 : 0;
}

/* A REX prefix with one of the bits: the instruction behind it is about r8 to r15. */
#define REX_R 4
#define REX_B 1
static bool is_rex(unsigned char byte, int bits) {
    return (byte & 0xf0) == 0x40 && (byte & bits) != 0;
}

/* `mov $nr, %eax`; for read(2), whose number is 0, `xor %eax, %eax`. The length; 0: neither. */
static int number_length(const unsigned char *at, int *nr) {
    bool mov = at[0] == 0xb8 && !is_rex(at[-1], REX_B) && at[3] == 0 && at[4] == 0;
    bool clears = at[0] == 0x31 && !is_rex(at[-1], REX_B | REX_R) && at[1] == 0xc0;
    *nr = 0;
    if (mov) memcpy(nr, at + 1, sizeof *nr);
    return mov ? 5 : clears ? 2 : 0;
}

/* One of these, and up to `call` only loads from the stack. */
static bool loads_number(const unsigned char *at, const unsigned char *call, int *nr) {
    int n = number_length(at, nr);
    while (n > 0 && (at += n) < call) n = load_length(at);
    return at == call;
}

/* Whose EINTR is it? If a handler of the program has interrupted the call and just returned, with
 * our signal due behind it, the EINTR is the program's. Then the kernel's frame for that handler,
 * with these registers, still lies below the stack pointer. (Our own is on another stack, or has
 * overwritten it.) It may lie there for longer; then a later EINTR goes to a program that knows
 * them. A handler on the alternate stack leaves no trace: preempt_m looks at the thread's mask. */
#define RED_ZONE 128
#define SIGNAL_FRAME_MOST (16 << 10) /* bytes, with all that xsave writes */
static bool handler_returned(const greg_t *r) {
    greg_t w[64];
    enum { OVERLAP = REG_RIP - REG_RAX };
    uintptr_t top = ((uintptr_t)r[REG_RSP] & ~(uintptr_t)7) - RED_ZONE;
    if (top - (uintptr_t)r < SIGNAL_FRAME_MOST) return false;
    for (uintptr_t at = top - sizeof w; at > top - SIGNAL_FRAME_MOST;
         at -= sizeof w - OVERLAP * sizeof w[0]) {
        if (!read_memory(at, w, sizeof w)) return false;
        for (size_t i = OVERLAP; i < sizeof w / sizeof w[0]; i++)
            if (w[i] == r[REG_RIP] && w[i - (REG_RIP - REG_RSP)] == r[REG_RSP] &&
                w[i - OVERLAP] == -EINTR)
                return true;
    }
    return false;
}

#define LOADS_MOST 15                      /* bytes */
#define CODE_MOST (1 + 5 + LOADS_MOST + 2) /* a prefix, the mov, the loads, the syscall */

/* Copies the code before pc. Where it begins with a mapping, zeros stand for what is not there. */
static bool copy_code(unsigned char *code, uintptr_t pc) {
    uintptr_t from = pc - CODE_MOST, skip = 4096 - from % 4096;
    if (read_memory(from, code, CODE_MOST)) return true;
    memset(code, 0, CODE_MOST);
    return skip < CODE_MOST && read_memory(from + skip, code + skip, CODE_MOST - skip);
}

/* The number of the call must come from the code: rax holds the result. */
void arch_repair_eintr(void *uc) {
    greg_t *r = ((ucontext_t *)uc)->uc_mcontext.gregs;
    unsigned char code[CODE_MOST];
    if (r[REG_RAX] != -EINTR || !copy_code(code, (uintptr_t)r[REG_RIP])) return;
    const unsigned char *call = code + CODE_MOST - 2, *at = call - 2;
    int nr;
    if (call[0] != 0x0f || call[1] != 0x05) return; /* syscall */
    while (!loads_number(at, call, &nr))
        if (--at < call - 5 - LOADS_MOST) return;
    /* close: the number may already be reused */
    if (nr == SYS_close || handler_returned(r)) return;
    r[REG_RIP] -= code + CODE_MOST - at;
}

long arch_context_call(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RAX]; }

void arch_end_call(void *uc) {
    greg_t *r = ((ucontext_t *)uc)->uc_mcontext.gregs;
    const unsigned char *call = (const unsigned char *)r[REG_RIP];
    if (call[0] != 0x0f || call[1] != 0x05) return; /* syscall */
    r[REG_RAX] = -EINTR;
    r[REG_RIP] += 2;
}
