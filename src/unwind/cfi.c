/*
 * One frame outwards by the compiler's own tables: .eh_frame, found through the sorted index in
 * .eh_frame_hdr, which is part of the loaded image (gcc -static leaves it out).
 *
 * For each range of code a table says where the caller's frame (the CFA) is and where each register
 * of the caller was saved, as a program for a small machine: "advance to this pc, from here on the
 * CFA is rsp+16, rbp is saved at CFA-16". The program of the common part (CIE) runs first, then
 * that of the function (FDE) up to the pc; the row it has reached is applied.
 *
 * Tables are read directly, after one checked read has shown that the module is still mapped. They
 * are trusted like the program itself, but lengths are checked. Stacks are read by read_memory()
 * only. Anything unknown gives -1, and the caller falls back to frame pointers.
 */
#include "unwind/bytes.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

enum {
    RULE_SAME,
    RULE_UNDEFINED,
    RULE_OFFSET,
    RULE_VAL_OFFSET,
    RULE_REGISTER,
    RULE_EXPR,
    RULE_VAL_EXPR
};

/* Kept small: a dump may run on a small stack. */
typedef struct RegRule {
    const uint8_t *expr;
    int32_t offset; /* from the CFA; or a register; or the length of expr */
    uint8_t kind;
} RegRule;

typedef struct Row {
    RegRule reg[UNWIND_REGS];
    const uint8_t *cfa_expr; /* NULL: cfa_reg + cfa_offset */
    uint32_t cfa_length;
    uint32_t cfa_reg;
    int64_t cfa_offset;
} Row;

typedef struct Cfi {
    Bytes cie, fde; /* the two programs */
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra;
    uint8_t encoding;
    bool signal;
    bool augmented;
    uintptr_t start, size; /* the code this FDE describes */
} Cfi;

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t number_of(Bytes *b, unsigned n, bool is_signed) {
    unsigned above = 64 - 8 * n;
    uint64_t v = fixed(b, n);
    return is_signed ? (uint64_t)((int64_t)(v << above) >> above) : v;
}

/* A block of bytes behind its length; NULL, with `bad` set: it does not fit. */
static const uint8_t *cfi_block(Bytes *b, uint32_t *length) {
    uint64_t n = uleb(b);
    if (b->bad || n > (uint64_t)(b->end - b->at)) return b->bad = true, NULL;
    const uint8_t *at = b->at;
    b->at += n;
    *length = (uint32_t)n;
    return at;
}

/* A pointer in one of DWARF's encodings; a relative one counts from its own address. */
static uintptr_t pointer(Bytes *b, uint8_t encoding) {
    static const uint8_t size[16] = {8, 0, 2, 4, 8, [0x0a] = 2, 4, 8};
    uintptr_t place = (uintptr_t)b->at, v;
    bool is_signed = encoding & 8;
    unsigned n = size[encoding & 0x0f];
    if (n > 0) v = number_of(b, n, is_signed);
    else if ((encoding & 7) == 1) v = (uintptr_t)leb(b, is_signed);
    else return b->bad = true, 0;
    if ((encoding & 0x70) == 0x10) v += place;
    else if ((encoding & 0x70) != 0) b->bad = true;
    return v;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* The body of the entry at `at`, behind its length. */
static bool cfi_entry(const uint8_t *at, Bytes *b) {
    uint32_t length;
    memcpy(&length, at, 4);
    if (length == 0 || length == 0xffffffff || length > 1 << 20) return false;
    *b = (Bytes){at + 4, at + 4 + length, false};
    return true;
}

/* The index is a sorted array of (start of code, FDE), both relative to the header. */
static const uint8_t *find_fde(const Module *mod, uintptr_t pc) {
    uint8_t head[12];
    uintptr_t hdr = mod->eh_hdr;
    if (hdr == 0) return NULL;
    if (mod == module_at(0)) memcpy(head, (void *)hdr, sizeof head); /* never unmapped */
    else if (!read_memory(hdr, head, sizeof head)) return NULL;
    if (head[0] != 1 || head[1] != 0x1b || head[2] != 0x03 || head[3] != 0x3b) return NULL;
    uint32_t n, lo = 0, hi;
    memcpy(&n, head + 8, 4);
    const int32_t(*table)[2] = (const int32_t(*)[2])(hdr + 12);
    for (hi = n; lo < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (hdr + (uintptr_t)(intptr_t)table[mid][0] <= pc) lo = mid + 1;
        else hi = mid;
    }
    return lo == 0 ? NULL : (const uint8_t *)(hdr + (uintptr_t)(intptr_t)table[lo - 1][1]);
}

static bool parse_augmentation(Cfi *c, Bytes *b, const char *text) {
    uint32_t length;
    if (*text == 0) return true;
    if (*text++ != 'z') return false;
    const uint8_t *data = cfi_block(b, &length);
    if (data == NULL) return false;
    Bytes in = {data, data + length, false};
    c->augmented = true;
    for (; *text; text++) {
        if (*text == 'R') c->encoding = (uint8_t)fixed(&in, 1);
        else if (*text == 'L') fixed(&in, 1);
        else if (*text == 'S') c->signal = true;
        else if (*text == 'P') {
            uint8_t enc = (uint8_t)fixed(&in, 1);
            pointer(&in, enc & 0x7f);
        } else if (*text != 'B') break; /* unknown: the length leads past it */
    }
    return !in.bad;
}

static bool parse_cie(Cfi *c, const uint8_t *at) {
    Bytes b;
    if (!cfi_entry(at, &b) || fixed(&b, 4) != 0) return false;
    uint64_t version = fixed(&b, 1);
    const char *text = (const char *)b.at;
    while (fixed(&b, 1) != 0) {}
    c->code_align = uleb(&b);
    c->data_align = sleb(&b);
    c->ra = version == 1 ? fixed(&b, 1) : uleb(&b);
    if ((version != 1 && version != 3) || b.bad || !parse_augmentation(c, &b, text)) return false;
    c->cie = b;
    return !b.bad && c->ra < UNWIND_REGS;
}

static bool parse_fde(Cfi *c, const uint8_t *at) {
    Bytes b;
    if (!cfi_entry(at, &b)) return false;
    const uint8_t *place = b.at;
    uint32_t back = (uint32_t)fixed(&b, 4), length;
    if (back == 0 || !parse_cie(c, place - back)) return false;
    c->start = pointer(&b, c->encoding);
    c->size = pointer(&b, c->encoding & 0x0f);
    if (c->augmented && cfi_block(&b, &length) == NULL) return false;
    c->fde = b;
    return !b.bad;
}

static bool cfi_find(uintptr_t pc, Cfi *c) {
    Module *mod = module_of(pc);
    const uint8_t *fde = mod ? find_fde(mod, pc) : NULL;
    *c = (Cfi){.encoding = 0};
    return fde && parse_fde(c, fde) && pc - c->start < c->size;
}

/* ---- the program ---------------------------------------------------------------------------- */

typedef struct Machine {
    Row row, initial;
    Row saved[2]; /* by remember_state, which compilers nest once at most */
    int depth;
    uintptr_t at; /* the code address this row begins at */
} Machine;

static void set_rule(Machine *k, uint64_t reg, int kind, int64_t offset) {
    if (reg < UNWIND_REGS)
        k->row.reg[reg] = (RegRule){.kind = (uint8_t)kind, .offset = (int32_t)offset};
}

static void set_expr(Machine *k, Bytes *b, uint64_t reg, int kind) {
    uint32_t length;
    const uint8_t *expr = cfi_block(b, &length);
    if (expr && reg < UNWIND_REGS)
        k->row.reg[reg] = (RegRule){.kind = (uint8_t)kind, .expr = expr, .offset = (int32_t)length};
}

static void set_cfa(Machine *k, uint64_t reg, int64_t offset) {
    k->row.cfa_reg = (uint32_t)reg;
    k->row.cfa_offset = offset;
    k->row.cfa_expr = NULL;
}

static void restore(Machine *k, uint64_t reg) {
    if (reg < UNWIND_REGS) k->row.reg[reg] = k->initial.reg[reg];
}

static void remember(Machine *k, Bytes *b, bool save) {
    if (save && k->depth < 2) k->saved[k->depth++] = k->row;
    else if (!save && k->depth > 0) k->row = k->saved[--k->depth];
    else b->bad = true;
}

#define REGISTER_FIRST 0x7733e0u /* a bit for each opcode whose first operand is a register */

/* The instructions whose operands follow the opcode. */
static void extended(Machine *k, const Cfi *c, Bytes *b, unsigned op) {
    uint64_t reg = op < 32 && (REGISTER_FIRST >> op & 1) ? uleb(b) : 0;
    switch (op) {
    case 0x00: break;
    case 0x01: k->at = pointer(b, c->encoding); break;
    case 0x02: k->at += fixed(b, 1) * c->code_align; break;
    case 0x03: k->at += fixed(b, 2) * c->code_align; break;
    case 0x04: k->at += fixed(b, 4) * c->code_align; break;
    case 0x05: set_rule(k, reg, RULE_OFFSET, (int64_t)uleb(b) * c->data_align); break;
    case 0x06: restore(k, reg); break;
    case 0x07: set_rule(k, reg, RULE_UNDEFINED, 0); break;
    case 0x08: set_rule(k, reg, RULE_SAME, 0); break;
    case 0x09: set_rule(k, reg, RULE_REGISTER, (int64_t)uleb(b)); break;
    case 0x0a: remember(k, b, true); break;
    case 0x0b: remember(k, b, false); break;
    case 0x0c: set_cfa(k, reg, (int64_t)uleb(b)); break;
    case 0x0d: set_cfa(k, reg, k->row.cfa_offset); break;
    case 0x0e: set_cfa(k, k->row.cfa_reg, (int64_t)uleb(b)); break;
    case 0x0f: k->row.cfa_expr = cfi_block(b, &k->row.cfa_length); break;
    case 0x10: set_expr(k, b, reg, RULE_EXPR); break;
    case 0x11: set_rule(k, reg, RULE_OFFSET, sleb(b) * c->data_align); break;
    case 0x12: set_cfa(k, reg, sleb(b) * c->data_align); break;
    case 0x13: set_cfa(k, k->row.cfa_reg, sleb(b) * c->data_align); break;
    case 0x14: set_rule(k, reg, RULE_VAL_OFFSET, (int64_t)uleb(b) * c->data_align); break;
    case 0x15: set_rule(k, reg, RULE_VAL_OFFSET, sleb(b) * c->data_align); break;
    case 0x16: set_expr(k, b, reg, RULE_VAL_EXPR); break;
    case 0x2d: break;          /* aarch64: signing of return addresses begins or ends */
    case 0x2e: uleb(b); break; /* GNU_args_size */
    default: b->bad = true; break;
    }
}

/* Runs a program until its row is the one for pc. */
static bool cfi_run(Machine *k, const Cfi *c, Bytes b, uintptr_t pc) {
    while (b.at < b.end && !b.bad) {
        unsigned op = (unsigned)fixed(&b, 1), low = op & 0x3f;
        switch (op >> 6) {
        case 1: k->at += low * c->code_align; break;
        case 2: set_rule(k, low, RULE_OFFSET, (int64_t)uleb(&b) * c->data_align); break;
        case 3: restore(k, low); break;
        default: extended(k, c, &b, op); break;
        }
        if (k->at > pc) break; /* an advance past pc: this is the row for pc */
    }
    return !b.bad;
}

/* ---- expressions ---------------------------------------------------------------------------- */

typedef struct Eval {
    uint64_t stack[16];
    int n;
    bool bad;
} Eval;

static void eval_push(Eval *e, uint64_t v) {
    if (e->n == 16) e->bad = true;
    else e->stack[e->n++] = v;
}
static uint64_t eval_pop(Eval *e) {
    if (e->n == 0) return e->bad = true, 0;
    return e->stack[--e->n];
}

static void eval_push_reg(Eval *e, const Regs *r, unsigned reg, int64_t offset) {
    if (!regs_has(r, reg)) e->bad = true;
    else eval_push(e, r->reg[reg] + (uint64_t)offset);
}

static void eval_deref(Eval *e) {
    uint64_t v = 0;
    if (!read_memory(eval_pop(e), &v, sizeof v)) e->bad = true;
    eval_push(e, v);
}

static void eval_binary(Eval *e, unsigned op) {
    uint64_t b = eval_pop(e), a = eval_pop(e);
    switch (op) {
    case 0x1a: eval_push(e, a & b); break;
    case 0x1c: eval_push(e, a - b); break;
    case 0x1e: eval_push(e, a * b); break;
    case 0x21: eval_push(e, a | b); break;
    case 0x22: eval_push(e, a + b); break;
    case 0x24: eval_push(e, b < 64 ? a << b : 0); break;
    case 0x25: eval_push(e, b < 64 ? a >> b : 0); break;
    case 0x27: eval_push(e, a ^ b); break;
    case 0x29: eval_push(e, a == b); break;
    case 0x2a: eval_push(e, (int64_t)a >= (int64_t)b); break;
    case 0x2b: eval_push(e, (int64_t)a > (int64_t)b); break;
    case 0x2c: eval_push(e, (int64_t)a <= (int64_t)b); break;
    case 0x2d: eval_push(e, (int64_t)a < (int64_t)b); break;
    case 0x2e: eval_push(e, a != b); break;
    default: e->bad = true; break;
    }
}

static void eval_one(Eval *e, Bytes *b, const Regs *r, unsigned op) {
    uint64_t a;
    if (op >= 0x08 && op <= 0x0f) return eval_push(e, number_of(b, 1u << (op - 8) / 2, op & 1));
    if (op >= 0x30 && op <= 0x4f) return eval_push(e, op - 0x30);
    if (op >= 0x50 && op <= 0x6f) return eval_push_reg(e, r, op - 0x50, 0);
    if (op >= 0x70 && op <= 0x8f) return eval_push_reg(e, r, op - 0x70, sleb(b));
    switch (op) {
    case 0x06: eval_deref(e); break;
    case 0x10: eval_push(e, uleb(b)); break;
    case 0x11: eval_push(e, (uint64_t)sleb(b)); break;
    case 0x12:
        a = eval_pop(e);
        eval_push(e, a);
        eval_push(e, a);
        break;
    case 0x13: eval_pop(e); break;
    case 0x23: eval_push(e, eval_pop(e) + uleb(b)); break;
    default: eval_binary(e, op); break;
    }
}

static bool eval(const uint8_t *at, uint32_t length, const Regs *r, const uint64_t *first,
                 uintptr_t *value) {
    Bytes b = {at, at + length, false};
    Eval e = {.n = 0};
    if (first) eval_push(&e, *first);
    while (b.at < b.end && !b.bad && !e.bad) eval_one(&e, &b, r, (unsigned)fixed(&b, 1));
    *value = eval_pop(&e);
    return !b.bad && !e.bad;
}

/* ---- applying a row -------------------------------------------------------------------------- */

static bool cfa_of(const Row *row, const Regs *r, uintptr_t *cfa) {
    if (row->cfa_expr) return eval(row->cfa_expr, row->cfa_length, r, NULL, cfa);
    if (!regs_has(r, row->cfa_reg)) return false;
    *cfa = r->reg[row->cfa_reg] + (uintptr_t)row->cfa_offset;
    return true;
}

/* The caller's value of one register. False: unknown. */
static bool recover(const RegRule *rule, const Regs *r, unsigned reg, uint64_t cfa,
                    uintptr_t *value) {
    uintptr_t at = cfa + (uint64_t)(int64_t)rule->offset;
    switch (rule->kind) {
    case RULE_SAME: *value = r->reg[reg]; return regs_has(r, reg);
    case RULE_OFFSET: return read_memory(at, value, sizeof *value);
    case RULE_VAL_OFFSET: *value = at; return true;
    case RULE_REGISTER:
        if (!regs_has(r, (uint32_t)rule->offset)) return false;
        *value = r->reg[rule->offset];
        return true;
    case RULE_EXPR:
        return eval(rule->expr, (uint32_t)rule->offset, r, &cfa, &at) &&
               read_memory(at, value, sizeof *value);
    case RULE_VAL_EXPR: return eval(rule->expr, (uint32_t)rule->offset, r, &cfa, value);
    default: return false;
    }
}

/* RULE_SAME is right only in the innermost frame, on a processor with a link register. */
static bool return_address(const Cfi *c, const Row *row, const Regs *r, uint64_t cfa,
                           uintptr_t *pc) {
    const RegRule *rule = &row->reg[c->ra];
    if (rule->kind == RULE_SAME && (c->ra == UNWIND_RA || !r->exact)) return false;
    return recover(rule, r, (unsigned)c->ra, cfa, pc);
}

static int cfi_apply(const Cfi *c, const Row *row, Regs *r) {
    Regs caller = {.known = 0};
    uintptr_t cfa, v;
    if (row->reg[c->ra].kind == RULE_UNDEFINED) return 0; /* marked as the outermost frame */
    if (!cfa_of(row, r, &cfa)) return -1;
    for (unsigned i = 0; i < UNWIND_REGS; i++) {
        const RegRule *rule = &row->reg[i];
        bool scratch = rule->kind == RULE_SAME && !c->signal && !(UNWIND_KEPT >> i & 1);
        if (!scratch && recover(rule, r, i, cfa, &v)) regs_put(&caller, i, v);
    }
    if (row->reg[UNWIND_SP].kind == RULE_SAME) /* without a rule, the caller's sp is the CFA */
        regs_put(&caller, UNWIND_SP, cfa);
    if (!return_address(c, row, r, cfa, &v)) return -1;
    const RegRule *ra = &row->reg[c->ra];
    caller.ra_at = ra->kind == RULE_OFFSET ? cfa + (uintptr_t)(intptr_t)ra->offset : 0;
    regs_put(&caller, UNWIND_RA, UNWIND_STRIP(v));
    *r = caller;
    return 1;
}

/* A return address points behind the call, perhaps into the next function: look one byte back. */
int cfi_step(Regs *r, bool *signal) {
    uintptr_t pc = r->reg[UNWIND_RA] - (r->exact ? 0 : 1);
    Cfi c;
    Machine k = {.depth = 0};
    if (!cfi_find(pc, &c) && (r->exact || !cfi_find(++pc, &c) || !c.signal)) return -1;
    if (!cfi_run(&k, &c, c.cie, UINTPTR_MAX)) return -1;
    k.initial = k.row;
    k.at = c.start;
    if (!cfi_run(&k, &c, c.fde, pc)) return -1;
    *signal = c.signal;
    return cfi_apply(&c, &k.row, r);
}

bool cfi_function(uintptr_t pc, uintptr_t *start, uintptr_t *size) {
    Cfi c;
    if (!cfi_find(pc, &c)) return false;
    *start = c.start;
    *size = c.size;
    return true;
}
