/*
 * The frames of a goroutine that runs on another thread.
 *
 * A thread that computes gets the preemption signal, and its handler walks the stack it
 * interrupted. One that sleeps in the kernel does not, or the program's call would return EINTR:
 * /proc/self/task/TID/syscall says where it left user space.
 *
 * There is one question at a time. The asker takes it by an exchange of `taken`; an asker that
 * finds it taken gets no answer. Its states: FREE -> ASKED (the asker) -> ANSWERING (the handler,
 * by CAS) -> ANSWERED. After 20 ms the asker takes an ASKED question back by the same CAS, so that
 * a late handler finds nothing to answer and never writes into the next question.
 */
#include "sched/capture.h"
#include "sched/threadstate.h"
#include "base/print.h"
#include "mem/split/split.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <sys/syscall.h>

#define FRAMES 64
#define PATIENCE (20 * GORT_MS)

enum { FREE, ASKED, ANSWERING, ANSWERED };

static struct {
    uint32_t taken; /* atomic: an asker has it */
    uint32_t state; /* atomic */
    M *target;      /* written before ASKED */
    int count;      /* written before ANSWERED */
    uintptr_t pcs[FRAMES];
} question;

static int walk(M *m, const Regs *r, uintptr_t *pcs, int max) {
    G *gp = load_rlx(&m->curg);
    Stack *s = gp ? load_rlx(&gp->stack) : NULL;
    uintptr_t lo = 0, hi = (uintptr_t)s, sp = r->reg[UNWIND_SP];
    if (s == NULL || !read_memory((uintptr_t)&s->lo, &lo, sizeof lo)) return 0;
    int cls;
    if (slot_at(sp, &cls) != 0) lo = hi = 0; /* on a segment */
    else if (sp < lo || sp > hi) return 0;   /* on g0: between two goroutines */
    return unwind(r, lo, hi, pcs, max);
}

int capture_context(M *m, void *context, uintptr_t *pcs, int max, bool *on_g0) {
    Regs r;
    regs_context(&r, context);
    int n = walk(m, &r, pcs, max);
    *on_g0 = n == 0;
    if (n > 0) return n;
    uintptr_t sp = r.reg[UNWIND_SP], lo = (uintptr_t)m->stack_lo, hi = (uintptr_t)m->stack_hi;
    bool inside = sp > lo && sp <= hi;
    return unwind(&r, inside ? lo : 0, inside ? hi : 0, pcs, max);
}

void capture_here(M *m, void *context) {
    uint32_t asked = ASKED;
    if (likely(load_rlx(&question.state) != ASKED) || m == NULL || load_rlx(&question.target) != m)
        return;
    if (!cas_acq(&question.state, &asked, ANSWERING)) return;
    Regs r;
    regs_context(&r, context);
    question.count = walk(m, &r, question.pcs, FRAMES);
    store_rel(&question.state, ANSWERED); /* pairs with the asker's acquire */
}

static int copy_answer(uintptr_t *pcs, int max) {
    int n = question.count < max ? question.count : max;
    memcpy(pcs, question.pcs, (size_t)n * sizeof *pcs);
    return n;
}

static int capture_ask(M *m, uintptr_t *pcs, int max) {
    int n = 0;
    uint32_t asked = ASKED;
    if (xchg_acq(&question.taken, 1)) return 0;
    store_rlx(&question.target, m);
    store_rel(&question.state, ASKED);
    int64_t until = time_after(os_now(), PATIENCE);
    if (os_tgkill(m->tid, settings.preempt_signal) == 0)
        while (load_acq(&question.state) != ANSWERED && os_now() < until) os_nap(20 * GORT_US);
    if (!cas_acq(&question.state, &asked, FREE)) { /* too late to take it back */
        while (load_acq(&question.state) != ANSWERED) os_nap(20 * GORT_US);
        n = copy_answer(pcs, max);
    }
    store_rlx(&question.state, FREE);
    store_rel(&question.taken, 0);
    return n;
}

static const char *skip_fields(const char *s, int n) {
    for (; n > 0 && *s; s++) n -= *s == ' ';
    return s;
}

static uintptr_t hex(const char *s) {
    uintptr_t v = 0;
    if (s[0] == '0' && s[1] == 'x') s += 2;
    for (;; s++) {
        if (*s >= '0' && *s <= '9') v = v << 4 | (uintptr_t)(*s - '0');
        else if (*s >= 'a' && *s <= 'f') v = v << 4 | (uintptr_t)(*s - 'a' + 10);
        else return v;
    }
}

/* The file says "number six-arguments sp pc", or "running". */
static int look_asleep(M *m, uintptr_t *pcs, int max) {
    char path[64], text[256];
    Regs r;
    print_buf(path, sizeof path, "/proc/self/task/%d/syscall", m->tid);
    long fd = os_sys(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0) return 0;
    long n = os_sys(SYS_read, fd, (long)text, sizeof text - 1, 0, 0, 0);
    os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    text[n > 0 ? n : 0] = 0;
    if (*skip_fields(text, 8) == 0) return 0;
    regs_at(&r, hex(skip_fields(text, 8)), hex(skip_fields(text, 7)), 0);
    r.known &= ~((uint64_t)1 << UNWIND_FP);
    return walk(m, &r, pcs, max);
}

int capture_running(M *m, uintptr_t *pcs, int max) {
    if (m == NULL || m->tid == 0 || !load_acq(&m->alive)) return 0;
    M *here = steady_begin(); /* files of /proc are opened */
    bool awake = thread_awake(m);
    int n = awake ? 0 : look_asleep(m, pcs, max);
    steady_end(here);
    return awake ? capture_ask(m, pcs, max) : n;
}
