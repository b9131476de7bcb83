/* aarch64: the decoder for the EINTR repair. Bits 28 to 25 tell the group of an instruction. */
#define PC(mc) ((mc)->pc)
#define REG(mc, n) ((mc)->regs[n])
enum { FIRST = 0, NUMBER = 8, ZERO = 31 };
#define CALL 0xd4000001 /* svc #0 */
#include "arch/eintr_repair.h"

static void branch(Insn *i, uintptr_t at, uint32_t w, int low, int n) {
    i->target = at + (uint64_t)(sign(bits(w, low, n), n) * 4);
}

static void branches_and_system(Insn *i, uintptr_t at, uint32_t w) {
    unsigned kind = bits(w, 21, 4);       /* of a jump through a register */
    if ((w & 0xfc000000) == 0x14000000) { /* b: the next one is reached from elsewhere */
        branch(i, at, w, 0, 26);
        i->opaque = true;
    } else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) { /* b.cond, cbz */
        branch(i, at, w, 5, 19);
    } else if ((w & 0x7e000000) == 0x36000000) { /* tbz */
        branch(i, at, w, 5, 14);
    } else if ((w & 0xffc00000) == 0xd5000000) { /* hints, barriers, mrs */
        i->writes = 1u << bits(w, 0, 5);
    } else {
        i->opaque = true; /* bl, blr, ret, svc, brk */
        i->indirect = (w & 0xfe000000) == 0xd6000000 && (kind == 0 || kind == 8);
    }
}

/* Every register it may write: both of a pair, an updated base, a status. */
static uint32_t memory_writes(uint32_t w) {
    return 1u << bits(w, 0, 5) | 1u << bits(w, 5, 5) | 1u << bits(w, 10, 5) | 1u << bits(w, 16, 5);
}

static Insn insn_decode(uintptr_t at) {
    Insn i = {.length = 4, .copy_of = -1};
    uint32_t w;
    memcpy(&w, (void *)at, sizeof w);
    unsigned group = bits(w, 25, 4);
    if ((w & 0x7fe0ffff) == 0x2a0003e0) { /* mov x0, xm: orr x0, xzr, xm */
        i.copy_of = (int)bits(w, 16, 5);
        i.narrow = !(w >> 31);
        i.writes = 1u << FIRST;
    } else if ((group & 0xe) == 0xa) {
        branches_and_system(&i, at, w);
    } else if ((group & 0x5) == 0x4) {
        i.writes = memory_writes(w);
    } else if ((group & 0xe) == 0x8 || (group & 0x7) == 0x5 || (group & 0x7) == 0x7) {
        i.writes = 1u << bits(w, 0, 5); /* processing: immediate, register, vector */
    } else {
        i.opaque = true;
    }
    return i;
}

void arch_repair_eintr(void *uc) { repair_by_copy(uc); }
long arch_context_call(void *uc) { return number_at_call(uc); }
void arch_end_call(void *uc) { end_at_call(uc); }
