/* riscv64: the decoder for the EINTR repair. An instruction has four bytes if its lowest two bits
 * are 11, else two. The pc stands in the place of x0. */
#define PC(mc) ((mc)->__gregs[0])
#define REG(mc, n) ((mc)->__gregs[n])
enum { RA = 1, T0 = 5, FIRST = 10, NUMBER = 17, ZERO = 0 };
#define CALL 0x73 /* ecall */
#include "arch/eintr_repair.h"

/* A jump through ra or t0 (the link registers) with rd 0 is a return. */
static void jump_register(Insn *i, unsigned rd, unsigned rs) {
    i->opaque = true;
    i->indirect = rd == 0 && rs != RA && rs != T0;
}

static int64_t branch_offset(uint32_t w) {
    return sign(
        bits(w, 31, 1) << 12 | bits(w, 7, 1) << 11 | bits(w, 25, 6) << 5 | bits(w, 8, 4) << 1, 13);
}
static int64_t jal_offset(uint32_t w) {
    return sign(bits(w, 31, 1) << 20 | bits(w, 12, 8) << 12 | bits(w, 20, 1) << 11 |
                    bits(w, 21, 10) << 1,
                21);
}

static void decode4(Insn *i, uintptr_t at, uint32_t w) {
    unsigned rd = bits(w, 7, 5), rs1 = bits(w, 15, 5);
    switch (w & 0x7f) {
    case 0x63: i->target = at + (uint64_t)branch_offset(w); break;
    case 0x6f:
        if (rd == 0) i->target = at + (uint64_t)jal_offset(w);
        i->opaque = true; /* a call, or the next one is reached from elsewhere */
        break;
    case 0x67: jump_register(i, rd, rs1); break;
    case 0x13:
        i->writes = 1u << rd;
        if ((w & 0xfff07fff) == 0x513) i->copy_of = (int)rs1; /* addi a0, rs1, 0 */
        break;
    case 0x03:
    case 0x17:
    case 0x1b:
    case 0x2f:
    case 0x33:
    case 0x37:
    case 0x3b:
    case 0x53: i->writes = 1u << rd; break;
    case 0x07:
    case 0x0f:
    case 0x23:
    case 0x27: break; /* fl*, fence, s*, fs* */
    default: i->opaque = true; break;
    }
}

static void decode_quadrant1(Insn *i, uintptr_t at, uint32_t w) {
    switch (bits(w, 13, 3)) {
    case 4: i->writes = 1u << (8 + bits(w, 7, 3)); break;
    case 5: /* c.j */
        i->target =
            at + (uint64_t)sign(bits(w, 12, 1) << 11 | bits(w, 11, 1) << 4 | bits(w, 9, 2) << 8 |
                                    bits(w, 8, 1) << 10 | bits(w, 7, 1) << 6 | bits(w, 6, 1) << 7 |
                                    bits(w, 3, 3) << 1 | bits(w, 2, 1) << 5,
                                12);
        i->opaque = true;
        break;
    case 6:
    case 7: /* c.beqz, c.bnez */
        i->target =
            at + (uint64_t)sign(bits(w, 12, 1) << 8 | bits(w, 10, 2) << 3 | bits(w, 5, 2) << 6 |
                                    bits(w, 3, 2) << 1 | bits(w, 2, 1) << 5,
                                9);
        break;
    default: i->writes = 1u << bits(w, 7, 5); break;
    }
}

static void decode_quadrant2(Insn *i, uint32_t w) {
    unsigned rd = bits(w, 7, 5), rs2 = bits(w, 2, 5);
    bool upper = bits(w, 12, 1);
    switch (bits(w, 13, 3)) {
    case 0:
    case 2:
    case 3: i->writes = 1u << rd; break;
    case 4:
        if (rs2 == 0) {
            jump_register(i, upper ? RA : 0, rd); /* c.jr, c.jalr, c.ebreak */
        } else {
            i->writes = 1u << rd;
            if (!upper && rd == FIRST) i->copy_of = (int)rs2; /* c.mv */
        }
        break;
    default: break; /* c.fldsp and the stores */
    }
}

static void decode2(Insn *i, uintptr_t at, uint32_t w) {
    unsigned op = bits(w, 13, 3);
    if (w == 0) i->opaque = true;
    else if ((w & 3) == 1) decode_quadrant1(i, at, w);
    else if ((w & 3) == 2) decode_quadrant2(i, w);
    else if (op == 0 || op == 2 || op == 3) i->writes = 1u << (8 + bits(w, 2, 3));
    else if (op == 4) i->opaque = true;
}

static Insn insn_decode(uintptr_t at) {
    uint16_t half[2];
    Insn i = {.copy_of = -1};
    memcpy(half, (void *)at, sizeof half[0]);
    i.length = (half[0] & 3) == 3 ? 4 : 2;
    if (i.length == 2) {
        decode2(&i, at, half[0]);
    } else {
        memcpy(half + 1, (void *)(at + 2), sizeof half[1]);
        decode4(&i, at, half[0] | (uint32_t)half[1] << 16);
    }
    return i;
}

void arch_repair_eintr(void *uc) { repair_by_copy(uc); }
long arch_context_call(void *uc) { return number_at_call(uc); }
void arch_end_call(void *uc) { end_at_call(uc); }
