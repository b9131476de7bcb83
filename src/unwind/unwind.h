/* Backtraces of any stack, without libc's help (unwind.c). */
#ifndef UNWIND_H
#define UNWIND_H

#include "base/base.h"
#include "unwind_arch.h"

/* A frame. `exact`: its pc was interrupted by a signal; else it is a return address. */
typedef struct Regs {
    uintptr_t reg[UNWIND_REGS];
    uint64_t known; /* bit i: reg[i] holds a value */
    bool exact;
    uintptr_t ra_at; /* after a step: where the return address was; 0: unknown or a register */
} Regs;

INLINE bool regs_has(const Regs *r, unsigned reg) {
    return reg < UNWIND_REGS && (r->known >> reg & 1);
}
INLINE void regs_put(Regs *r, unsigned reg, uintptr_t value) {
    r->reg[reg] = value;
    r->known |= (uint64_t)1 << reg;
}

/* Where a backtrace starts; the first two: arch/<cpu>/unwind_regs.c. */
void regs_saved(Regs *r, void *sp);         /* a context that arch_switch has saved */
void regs_context(Regs *r, void *ucontext); /* what a signal has interrupted */
void regs_frame(Regs *r, uintptr_t fp);     /* the caller of the function with frame pointer fp */
void regs_at(Regs *r, uintptr_t pc, uintptr_t sp, uintptr_t fp);
/* r stands at the beginning of a function, where a call has just led: to its caller. */
void regs_return(Regs *r);

/* Stacks grow by segments, at any address: without bounds the order of frames is not checked. */
extern bool unwind_segments;
/* Fills pcs with the program counters from the innermost frame outwards; returns their number. The
 * stack lies in [lo, hi); 0, 0: unknown, only the order of frames is checked. Any thread, in a
 * handler; the stack may be in use: a bad address only ends the trace. */
int unwind(const Regs *from, uintptr_t lo, uintptr_t hi, uintptr_t *pcs, int max);

/* The same, where a recursion takes no room: of up to 8 frames that follow on each other again and
 * again three turns are kept, and more[i] tells how many frames were left out behind pcs[i]. */
int unwind_folded(const Regs *from, uintptr_t lo, uintptr_t hi, uintptr_t *pcs, uint32_t *more,
                  int max);
/* One frame outwards; r->exact: over that of a signal. False: there is none, or none sensible. */
bool unwind_step(Regs *r, uintptr_t lo, uintptr_t hi);

/* The outermost frame whose pc inside() accepts, and whose caller's pc it does not. */
typedef struct Exit {
    uintptr_t at;  /* where its return address stands; 0: there is no such frame */
    uintptr_t pc;  /* of that frame */
    bool callback; /* a frame that inside() refuses lies further in */
    bool exact;    /* it was interrupted, and is in no call */
} Exit;
Exit unwind_exit(const Regs *from, uintptr_t lo, uintptr_t hi, bool (*inside)(uintptr_t pc));

/* One frame outwards by the compiler's tables (cfi.c): r becomes the caller's. 1: done, 0: this was
 * the outermost frame, -1: the tables do not know pc, and r is as it was. *signal: this was the
 * trampoline of a signal handler, so the caller's pc is exact. */
int cfi_step(Regs *r, bool *signal);

/* The function that contains pc, by the tables. False: they know none. */
bool cfi_function(uintptr_t pc, uintptr_t *start, uintptr_t *size);

/* Copies n bytes; false: they are not mapped, or not readable. Any thread, in a handler. */
bool read_memory(uintptr_t from, void *to, size_t n);

#endif
