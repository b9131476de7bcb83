/*
 * Backtraces of any stack: parked goroutines, the current one, an interrupted one.
 *
 * The compiler's unwind tables (cfi.c) are exact and need no frame pointers. Where a module has no
 * tables (an assembler file, generated code), the chain of frame pointers is followed.
 *
 * libgcc's unwinder takes the loader's lock, may allocate, and follows a corrupted stack into a
 * fault. This one takes no lock and reads every word of a stack by read_memory(), so a wrong trace
 * only ends early. A step is taken only if the caller's frame lies above this one, inside the stack
 * where its bounds are known, and its pc is not in the first page. A signal frame may lead from the
 * alternate stack to any other, so no order is asked of that step. Where stacks grow by segments
 * (split.c) there is no order: only the number of frames bounds the trace.
 */
#include "unwind/unwind.h"
#include "arch.h"
#include "base/atomic.h"
#include "unwind/modules.h"
#include "os/os.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Two system calls that change nothing tell: msync() fails where no page is mapped, and
 * rt_sigprocmask() reads 8 bytes before it refuses its first argument. */
static bool looks_readable(uintptr_t from, size_t n) {
    const uintptr_t page = 4096;
    for (uintptr_t at = from & ~(page - 1); at < from + n; at += page)
        if (os_sys(SYS_msync, (long)at, 1, MS_ASYNC, 0, 0, 0) == -ENOMEM) return false;
    for (uintptr_t at = from & ~(uintptr_t)7; at < from + n; at += 8)
        if (os_sys(SYS_rt_sigprocmask, -1, (long)at, 0, 8, 0, 0) == -EFAULT) return false;
    return true;
}

/* The kernel copies: an address that is not mapped, or a guard, is an error, not a fault. */
bool read_memory(uintptr_t from, void *to, size_t n) {
    static uint32_t refused; /* atomic: a sandbox forbids the call, or an emulator lacks it */
    struct iovec here = {to, n}, there = {(void *)from, n};
    if (from < 4096 || from + n < from || (intptr_t)(from + n) < 0) return false;
    if (!load_rlx(&refused)) {
        long r = os_sys(SYS_process_vm_readv, os_getpid(), (long)&here, 1, (long)&there, 1, 0);
        if (r == (long)n) return true;
        if (r != -ENOSYS && r != -EPERM && r != -EACCES) return false;
        store_rlx(&refused, 1);
    }
    if (!looks_readable(from, n)) return false;
    memcpy(to, (void *)from, n);
    return true;
}

/* A lower bound is not marked as known: unwinding follows the frame records, not the tables. */
void regs_at(Regs *r, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
    *r = (Regs){.known = 0};
    regs_put(r, UNWIND_RA, UNWIND_STRIP(pc));
    regs_put(r, UNWIND_FP, fp);
    if (UNWIND_RECORD_TELLS_SP) regs_put(r, UNWIND_SP, sp);
    else r->reg[UNWIND_SP] = sp;
}

void regs_frame(Regs *r, uintptr_t fp) {
    uintptr_t at[2], record = (uintptr_t)arch_frame_record((void *)fp);
    *r = (Regs){.known = 0};
    if (read_memory(record, at, sizeof at)) regs_at(r, at[1], record + sizeof at, at[0]);
}

void regs_return(Regs *r) {
    uintptr_t to = r->reg[UNWIND_LINK];
    if (UNWIND_LINK == UNWIND_SP) { /* it stands on the stack */
        to = 0;
        read_memory(r->reg[UNWIND_SP], &to, sizeof to);
        regs_put(r, UNWIND_SP, r->reg[UNWIND_SP] + sizeof to);
    }
    regs_put(r, UNWIND_RA, UNWIND_STRIP(to));
    r->exact = false;
}

bool unwind_segments;

static int unwind_fp_step(Regs *r) {
    uintptr_t fp = r->reg[UNWIND_FP];
    if (!regs_has(r, UNWIND_FP) || fp < r->reg[UNWIND_SP] || fp % sizeof fp != 0) return 0;
    regs_frame(r, fp);
    return regs_has(r, UNWIND_RA) && module_of(r->reg[UNWIND_RA]) ? 1 : 0;
}

static bool sensible(const Regs *now, const Regs *before, bool signal, uintptr_t lo, uintptr_t hi) {
    uintptr_t sp = now->reg[UNWIND_SP];
    if (now->reg[UNWIND_RA] < 4096) return false;
    if (signal || (hi == 0 && unwind_segments)) return true;
    if (sp < before->reg[UNWIND_SP]) return false;
    bool still = sp == before->reg[UNWIND_SP] && now->reg[UNWIND_RA] == before->reg[UNWIND_RA];
    if (still && !before->exact) return false; /* only a leaf or a trap of inlibc.c has no frame */
    return hi == 0 || (sp > lo && sp <= hi);
}

bool unwind_step(Regs *r, uintptr_t lo, uintptr_t hi) {
    Regs before = *r;
    bool signal = false;
    int got = cfi_step(r, &signal);
    if (got < 0) {
        signal = UNWIND_TRAMPOLINE(r); /* cfi_step may have set it before it failed */
        got = signal ? 1 : unwind_fp_step(r);
    }
    if (got <= 0 || !sensible(r, &before, signal, lo, hi)) return false;
    r->exact = signal;
    return true;
}

int unwind(const Regs *from, uintptr_t lo, uintptr_t hi, uintptr_t *pcs, int max) {
    Regs r = *from;
    int n = 0;
    if (!regs_has(&r, UNWIND_RA)) return 0;
    while (n < max) {
        pcs[n++] = r.reg[UNWIND_RA];
        if (!unwind_step(&r, lo, hi)) break;
    }
    return n;
}

#define DEEP 512 /* frames; deeper ones are not examined */

Exit unwind_exit(const Regs *from, uintptr_t lo, uintptr_t hi, bool (*inside)(uintptr_t pc)) {
    Regs r = *from, before = r;
    Exit found = {0};
    if (!regs_has(&r, UNWIND_RA)) return found;
    bool was = inside(r.reg[UNWIND_RA]), others = !was;
    for (int n = 0; n < DEEP && unwind_step(&r, lo, hi); n++, before = r) {
        bool now = inside(r.reg[UNWIND_RA] - !r.exact);
        if (was && !now && !r.exact && r.ra_at) /* a handler's trampoline does not return */
            found = (Exit){r.ra_at, before.reg[UNWIND_RA] - !before.exact, others, before.exact};
        others |= !now;
        was = now;
    }
    return found;
}
