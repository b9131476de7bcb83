/*
 * What a goroutine is and does, in words: why it waits, its name and function, its frames.
 *
 * It is made in the worst moments (dump.c): it takes no lock, allocates nothing and trusts nothing.
 * Records of Gs and Ms are never unmapped; a stack is read through read_memory(). Frames are
 * dropped if the goroutine's status changes while they are read.
 */
#include "sched/describe.h"
#include "base/print.h"
#include "base/upstairs.h"
#include "mem/split/split.h"
#include "sched/capture.h"
#include "sched/trace.h"
#include "unwind/unwind.h"

static const char *const reasons[WAIT_REASONS] = {
    [WAIT_NONE] = "waiting",
    [WAIT_CHAN_RECV] = "chan receive",
    [WAIT_CHAN_SEND] = "chan send",
    [WAIT_CHAN_RECV_NIL] = "chan receive (nil chan)",
    [WAIT_CHAN_SEND_NIL] = "chan send (nil chan)",
    [WAIT_SELECT] = "select",
    [WAIT_SELECT_NONE] = "select (no cases)",
    [WAIT_SLEEP] = "sleep",
    [WAIT_MUTEX] = "sync.Mutex.Lock",
    [WAIT_RWMUTEX_R] = "sync.RWMutex.RLock",
    [WAIT_RWMUTEX_W] = "sync.RWMutex.Lock",
    [WAIT_WG] = "sync.WaitGroup.Wait",
    [WAIT_COND] = "sync.Cond.Wait",
    [WAIT_SEMA] = "semacquire",
    [WAIT_IO] = "IO wait",
    [WAIT_SYSCALL] = "syscall",
    [WAIT_FILE] = "file IO",
    [WAIT_STOP_WORLD] = "stop the world",
};

const char *reason_text(int reason) {
    return reason >= 0 && reason < WAIT_REASONS && reasons[reason] ? reasons[reason] : "waiting";
}

const char *status_text(uint32_t status, int reason) {
    switch (status) {
    case G_IDLE: return "idle";
    case G_RUNNABLE: return "runnable";
    case G_RUNNING: return "running";
    case G_SYSCALL: return "syscall";
    case G_WAITING: return reason_text(reason);
    case G_DEAD: return "dead";
    default: return "unknown";
    }
}

/* The record of a stack may be reused at any time: so the copy is terminated and cleaned here. */
void g_name(G *gp, char *buf) {
    Stack *s = load_rlx(&gp->stack);
    buf[0] = 0;
    if ((gp->flags & GF_NAMED) == 0 || s == NULL) return;
    if (!read_memory((uintptr_t)s->name, buf, STACK_NAME)) buf[0] = 0;
    buf[STACK_NAME - 1] = 0;
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '"' || *c == 127) *c = '?';
}

void g_rename(M *m, G *gp, const char *name) {
    copy_name(gp->stack->name, STACK_NAME, name);
    if (unlikely(load_rlx(&trace_on) != 0)) trace_put_name(m, gp);
}

bool g_is_thread(G *gp) {
    Stack *s = load_rlx(&gp->stack);
    uint16_t kind;
    return s && gp->flags & GF_NAMED && read_memory((uintptr_t)&s->custom, &kind, sizeof kind) &&
           kind == STACK_BODY;
}

static bool wrapped(G *gp) {
    return gp->fn == upstairs.wg_member || gp->fn == upstairs.group_member;
}

uintptr_t g_entry(G *gp) {
    uintptr_t fn = (uintptr_t)gp->fn, words[2];
    if (gp->id == 1) return gp->created_at - 1; /* what gort_main was given (init.c) */
    if (wrapped(gp) && read_memory((uintptr_t)gp->arg, words, sizeof words)) fn = words[1];
    return fn;
}

uintptr_t g_entry_new(G *gp) {
    if (gp->id == 1) return gp->created_at - 1;
    return wrapped(gp) ? ((uintptr_t *)gp->arg)[1] : (uintptr_t)gp->fn;
}

static void regs_of_call(Regs *r, M *m) {
    regs_at(r, load_rlx(&m->call[0]), load_rlx(&m->call[1]), load_rlx(&m->call[2]));
}

/* Where the trace of gp starts; false: gp runs on another thread, or has not run yet. */
static bool start_of(G *gp, void *context, Regs *r) {
    M *m = getm();
    uint32_t status = load_acq(&gp->status);
    if (m && m->curg == gp && (status == G_RUNNING || status == G_SYSCALL)) {
        if (context) regs_context(r, context);
        else regs_frame(r, (uintptr_t)__builtin_frame_address(0));
        return true;
    }
    if (status == G_SYSCALL) {
        regs_of_call(r, load_rlx(&gp->m));
        return true;
    }
    if (status == G_RUNNING) return false;
    M *home = load_acq(&gp->home);
    /* stopped by signal: the pair of queue_here_locked (preempt.c), for the context */
    if (home && load_acq(&home->in_handler) && load_rlx(&home->curg) == gp) {
        void *at = load_rlx(&home->context);
        if (at) regs_context(r, at);
        else regs_of_call(r, home);
        return true;
    }
    void *sp = load_rlx(&gp->sp);
    if (sp == NULL) return false;
    regs_saved(r, sp);
    return true;
}

/* `more` may be NULL: then recursions are stored as they are. */
int backtrace_g_folded(G *gp, void *context, uintptr_t *pcs, uint32_t *more, int max) {
    Regs r;
    uintptr_t lo = 0;
    uint32_t before = load_acq(&gp->status), ticket = load_acq(&gp->ticket);
    Stack *s = load_rlx(&gp->stack);
    if (s == NULL) return 0;
    if (more) memset(more, 0, (size_t)max * sizeof *more);
    if (!start_of(gp, context, &r))
        return before == G_RUNNING ? capture_running(gp->m, pcs, max) : 0;
    uintptr_t hi = (uintptr_t)s;
    if (!read_memory((uintptr_t)&s->lo, &lo, sizeof lo)) return 0;
    uintptr_t sp = r.reg[UNWIND_SP];
    /* on g0, an alternate stack or a segment: no bounds, unwind() checks the order only */
    if (sp < lo || sp > hi || split.mode != SPLIT_OFF) lo = hi = 0;
    int n = more ? unwind_folded(&r, lo, hi, pcs, more, max) : unwind(&r, lo, hi, pcs, max);
    bool same = load_acq(&gp->status) == before && load_acq(&gp->ticket) == ticket;
    return same ? n : 0;
}

int backtrace_g(G *gp, void *context, uintptr_t *pcs, int max) {
    return backtrace_g_folded(gp, context, pcs, NULL, max);
}
