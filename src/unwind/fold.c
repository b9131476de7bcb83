/*
 * Backtraces of deep recursions.
 *
 * A dump shows 64 frames. Of a stack that a recursion has filled that would be the same line 64
 * times, and never the frame that began it. So frames are folded while they are found: the last
 * ones are compared with those before them, and once up to PERIOD frames have come TURNS times in a
 * row, further turns are only counted. The call that is compared is the return address, so a
 * function that calls itself at two places in no order is not folded.
 */
#include "unwind/unwind.h"

#define PERIOD 8
#define TURNS 3
#define DEEPEST 100000 /* frames that are looked at; without bounds of a stack, a hundredth */

typedef struct Fold {
    uintptr_t *pcs;
    uint32_t *more;
    int n, max;
    int period;     /* the last so many of pcs repeat; 0: none do */
    uint32_t count; /* frames since, which are not stored */
} Fold;

static bool fold_repeats(const Fold *f, int period) {
    const uintptr_t *end = f->pcs + f->n;
    if (f->n < TURNS * period) return false;
    for (int i = 1; i <= (TURNS - 1) * period; i++)
        if (end[-i] != end[-i - period]) return false;
    return true;
}

static bool fold_store(Fold *f, uintptr_t pc) {
    if (f->n == f->max) return false;
    f->more[f->n] = 0;
    f->pcs[f->n++] = pc;
    return true;
}

/* The recursion is over. A turn that was not finished is stored. */
static void fold_end(Fold *f) {
    if (f->period == 0) return;
    const uintptr_t *turn = f->pcs + f->n - f->period;
    uint32_t rest = f->count % (uint32_t)f->period;
    f->more[f->n - 1] = f->count - rest;
    for (uint32_t i = 0; i < rest; i++) fold_store(f, turn[i]);
    f->period = 0;
}

static void fold_add(Fold *f, uintptr_t pc) {
    if (f->period && pc == f->pcs[f->n - f->period + (int)(f->count % (uint32_t)f->period)]) {
        f->count++;
        return;
    }
    fold_end(f);
    f->count = 0;
    if (!fold_store(f, pc)) return;
    for (int d = 1; d <= PERIOD && f->period == 0; d++)
        if (fold_repeats(f, d)) f->period = d;
}

int unwind_folded(const Regs *from, uintptr_t lo, uintptr_t hi, uintptr_t *pcs, uint32_t *more,
                  int max) {
    Regs r = *from;
    Fold f = {.pcs = pcs, .more = more, .max = max};
    if (!regs_has(&r, UNWIND_RA)) return 0;
    for (int left = hi ? DEEPEST : DEEPEST / 100; left > 0 && (f.n < max || f.period); left--) {
        fold_add(&f, r.reg[UNWIND_RA]);
        if (!unwind_step(&r, lo, hi)) break;
    }
    fold_end(&f);
    return f.n;
}
