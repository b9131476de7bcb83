/*
 * What a crash says, where a signal of the program's own doing ends it (faults.c).
 *
 *     gort: fatal: SIGSEGV in goroutine 7 "worker": nothing is mapped at address 0x2000
 *
 *     goroutine 7 "worker" [running, 3ms]:
 *       0x000055e0a1b2c3a0 visit+0x54 app.c:34 (app)
 *       created by start_all+0x31 app.c:51 (app) in goroutine 1 with worker
 *
 * Unlike a dump it has one block, the frames that crashed: with ten thousand goroutines the others
 * would bury it. On a thread that is no goroutine, and on the stack where the scheduler runs, the
 * block has the thread's number and name, and all frames, the library's too.
 *
 * It is made in the handler of the signal, on the alternate stack, with any lock held: as a dump it
 * takes none, allocates nothing, and reads stacks by read_memory().
 *
 * A call by a wrong pointer leads where no table tells how to go on. There the address of the fault
 * is that of the next instruction, and the trace goes on with the caller.
 */
#include "debug/crash.h"
#include "debug/dump.h"
#include "base/fatal.h"
#include "mem/split/split.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef struct Crash {
    int signo;
    const siginfo_t *info;
    M *m;
    G *gp;    /* NULL: a plain thread, or m's scheduler */
    Regs at;  /* what was interrupted */
    Frames f; /* innermost first */
} Crash;

/* ---- why ------------------------------------------------------------------------------------- */

static const char *signal_name(int signo) {
    switch (signo) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGABRT";
    }
}

static void why_sent(Out *o, const Crash *c) {
    int code = c->info->si_code, pid = c->info->si_pid;
    bool known = code == SI_USER || code == SI_TKILL || code == SI_QUEUE;
    if (known && pid != os_getpid()) out_fmt(o, "sent by process %d", pid);
    else out_str(o, c->signo == SIGABRT ? "the program has called abort" : "sent by the program");
}

static bool crash_by_jump(const Crash *c) {
    return c->signo == SIGSEGV && c->info->si_code > 0 &&
           (uintptr_t)c->info->si_addr == c->at.reg[UNWIND_RA];
}

static void why_segv(Out *o, const Crash *c) {
    uintptr_t at = (uintptr_t)c->info->si_addr;
    if (crash_by_jump(c)) out_fmt(o, "a call or jump to address 0x%lx, where there is no code", at);
    else if (c->info->si_code == SEGV_MAPERR) out_fmt(o, "nothing is mapped at address 0x%lx", at);
    else out_fmt(o, "the memory at address 0x%lx does not allow it", at);
    if (at < 4096) out_str(o, " (a null pointer)");
}

static const char *why_bus(int code) {
    switch (code) {
    case BUS_ADRALN: return "is not aligned";
    case BUS_ADRERR: return "is mapped, but its file ends before it, or memory ran out";
    default: return "met a fault of the machine";
    }
}

static const char *why_fpe(int code) {
    switch (code) {
    case FPE_INTDIV: return "an integer division by zero, or of the least integer by -1";
    case FPE_INTOVF: return "an integer overflow";
    case FPE_FLTDIV: return "a floating-point number divided by zero";
    default: return "a floating-point exception";
    }
}

static void crash_why(Out *o, const Crash *c) {
    uintptr_t at = (uintptr_t)c->info->si_addr;
    bool memory = c->signo == SIGSEGV || c->signo == SIGBUS;
    if (c->info->si_code <= 0) why_sent(o, c);
    else if (memory && c->info->si_code == SI_KERNEL) /* by rbp or rsp it is a SIGBUS */
        out_str(o, "an address that no memory can have");
    else if (c->signo == SIGSEGV) why_segv(o, c);
    else if (c->signo == SIGBUS) out_fmt(o, "address 0x%lx %s", at, why_bus(c->info->si_code));
    else if (c->signo == SIGFPE) out_fmt(o, "%s, at 0x%lx", why_fpe(c->info->si_code), at);
    else out_fmt(o, "no instruction, or a trap of the compiler's, at 0x%lx", at);
}

/* ---- where ----------------------------------------------------------------------------------- */

static bool lies_in(uintptr_t sp, uintptr_t lo, uintptr_t hi) { return sp >= lo && sp <= hi; }

/* The M and the goroutine that crashed. [*lo, *hi): the stack, where it is known. */
static void crash_who(Crash *c, uintptr_t *lo, uintptr_t *hi) {
    uintptr_t sp = c->at.reg[UNWIND_SP];
    M *m = c->m = getm();
    *lo = *hi = 0;
    if (m == NULL || m->plain) return;
    if (lies_in(sp, (uintptr_t)m->stack_lo, (uintptr_t)m->stack_hi)) {
        *lo = (uintptr_t)m->stack_lo, *hi = (uintptr_t)m->stack_hi;
        return;
    }
    c->gp = m->curg;
    Stack *s = c->gp ? c->gp->stack : NULL;
    if (s && split.mode == SPLIT_OFF && lies_in(sp, (uintptr_t)s->lo, (uintptr_t)s))
        *lo = (uintptr_t)s->lo, *hi = (uintptr_t)s;
}

static void crash_frames(Crash *c, uintptr_t lo, uintptr_t hi) {
    Frames *f = &c->f;
    Regs r = c->at;
    if (crash_by_jump(c)) {
        f->pcs[0] = r.reg[UNWIND_RA];
        f->more[0] = 0;
        regs_return(&r);
        f->n = 1;
    }
    f->n += unwind_folded(&r, lo, hi, f->pcs + f->n, f->more + f->n, FRAMES - f->n);
}

static bool scheduler(const Crash *c) { return c->gp == NULL && c->m && !c->m->plain; }

static void crash_place(Out *o, const Crash *c) {
    char name[STACK_NAME] = "";
    if (c->gp) {
        g_name(c->gp, name);
        out_fmt(o, "goroutine %lu", c->gp->id);
    } else {
        sys6(SYS_prctl, PR_GET_NAME, name, 0, 0, 0, 0);
        out_fmt(o, "thread %d", os_gettid());
    }
    if (name[0]) {
        out_str(o, " \"");
        out_plain(o, name);
        out_str(o, "\"");
    }
    if (c->gp == NULL) out_str(o, scheduler(c) ? ", in the scheduler" : ", which is no goroutine");
}

/* ---- the report ------------------------------------------------------------------------------ */

static void crash_line(const Crash *c, bool handled) {
    char buf[400];
    Out o = {.fd = -1, .size = sizeof buf - 2, .buf = buf};
    out_fmt(&o, "gort: %s%s in ", handled ? "" : "fatal: ", signal_name(c->signo));
    crash_place(&o, c);
    out_str(&o, ": ");
    crash_why(&o, c);
    if (handled) out_str(&o, "; the program's handler is called");
    buf[o.used++] = '\n';
    buf[o.used++] = '\n';
    write_all(2, buf, o.used);
}

static void crash_block(const Crash *c) {
    char buf[2048];
    Out o = OUT(2, buf);
    if (c->gp) {
        dump_frames(&o, c->gp, &c->f);
    } else {
        crash_place(&o, c);
        out_str(&o, ":\n");
        if (scheduler(c)) frames_print_all(&o, &c->f);
        else frames_print(&o, &c->f, 0);
        out_str(&o, "\n");
    }
    out_flush(&o);
}

void crash_report(int signo, const siginfo_t *info, void *context, bool handled) {
    Crash c = {.signo = signo, .info = info};
    uintptr_t lo, hi;
    regs_context(&c.at, context);
    crash_who(&c, &lo, &hi);
    crash_line(&c, handled);
    crash_frames(&c, lo, hi);
    crash_block(&c);
}
