/*
 * Every goroutine as text: what a stuck program says.
 *
 *     goroutine 7 "name" [chan receive, 12ms]:
 *       0x000055e0a1b2c3d4 recv_loop+0x54 (app)
 *       ...
 *       created by start_all+0x31 (app) in goroutine 1 with recv_loop
 *
 * A dump is made in the worst moments: by fatal() with any lock held, by the handler of SIGQUIT or
 * of a stack overflow. So it takes no lock, allocates nothing and trusts nothing. Goroutines may
 * run, park and end meanwhile. G records are type-stable (g.c) and M records are never freed, so
 * they can always be read; what is read may be a moment old. A stack is read by read_memory(), for
 * which a page that was just given back is an error, not a fault. The status and ticket are read
 * before and after a trace, and a trace during which they changed is dropped.
 *
 * Frames come from unwind.c, names from symbols.c. A goroutine that runs on another thread is
 * asked by signal (capture.c). One in a blocking call is unwound from where it announced the call,
 * which stays valid until it is back.
 */
#include "debug/dump.h"
#include "debug/capture.h"
#include "debug/stats.h"
#include "sched/goexit.h"
#include "sched/g.h"
#include "sched/sched.h"
#include "mem/split/split.h"
#include "unwind/symbols.h"
#include "unwind/unwind.h"

#define FRAMES 64

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

/* 12ms up to ten seconds, then 75s, then 12m. */
static void print_age(Out *o, int64_t since) {
    int64_t ms = (os_now() - since) / GORT_MS;
    if (ms < 0 || since == 0) ms = 0;
    if (ms < 10 * 1000) out_fmt(o, "%ldms", (long)ms);
    else if (ms < 600 * 1000) out_fmt(o, "%lds", (long)(ms / 1000));
    else out_fmt(o, "%ldm", (long)(ms / 60000));
}

/* The record of a stack may be reused at any time: the copy is always ended and clean. */
void g_name(G *gp, char *buf) {
    Stack *s = load_rlx(&gp->stack);
    buf[0] = 0;
    if ((gp->flags & GF_NAMED) == 0 || s == NULL) return;
    if (!read_memory((uintptr_t)s->name, buf, STACK_NAME)) buf[0] = 0;
    buf[STACK_NAME - 1] = 0;
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '"' || *c == 127) *c = '?';
}

static bool wrapped(G *gp) { return gp->fn == wg_member_run || gp->fn == group_member_run; }

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

/* ---- frames --------------------------------------------------------------------------------- */

/* Where the trace of gp starts; false: it runs elsewhere, or has not run yet. */
static bool start_of(G *gp, void *context, Regs *r) {
    M *m = getm();
    uint32_t status = load_acq(&gp->status);
    if (m && m->curg == gp && (status == G_RUNNING || status == G_SYSCALL)) {
        if (context) regs_context(r, context);
        else regs_frame(r, (uintptr_t)__builtin_frame_address(0));
        return true;
    }
    if (status == G_SYSCALL) {
        M *on = load_rlx(&gp->m);
        regs_at(r, load_rlx(&on->call[0]), load_rlx(&on->call[1]), load_rlx(&on->call[2]));
        return true;
    }
    if (status == G_RUNNING) return false;
    M *home = load_acq(&gp->home);
    /* stopped by signal */
    if (home && load_acq(&home->in_handler) && load_rlx(&home->curg) == gp) {
        void *at = load_rlx(&home->context);
        if (at) regs_context(r, at);
        else
            regs_at(r, load_rlx(&home->call[0]), load_rlx(&home->call[1]),
                    load_rlx(&home->call[2]));
        return true;
    }
    void *sp = load_rlx(&gp->sp);
    if (sp == NULL) return false;
    regs_saved(r, sp);
    return true;
}

int backtrace_g(G *gp, void *context, uintptr_t *pcs, int max) {
    Regs r;
    uintptr_t lo = 0;
    uint32_t before = load_acq(&gp->status), ticket = load_acq(&gp->ticket);
    Stack *s = load_rlx(&gp->stack);
    if (s == NULL) return 0;
    if (!start_of(gp, context, &r))
        return before == G_RUNNING ? capture_running(gp->m, pcs, max) : 0;
    uintptr_t hi = (uintptr_t)s;
    if (!read_memory((uintptr_t)&s->lo, &lo, sizeof lo)) return 0;
    uintptr_t sp = r.reg[UNWIND_SP];
    /* on g0, or an alternate stack: the order is checked only */
    if (sp < lo || sp > hi || split.mode != SPLIT_OFF) lo = hi = 0;
    int n = unwind(&r, lo, hi, pcs, max);
    bool same = load_acq(&gp->status) == before && load_acq(&gp->ticket) == ticket;
    return same ? n : 0;
}

static void print_frames(Out *o, const uintptr_t *pcs, int first, int n) {
    for (int i = first; i < n; i++) {
        out_fmt(o, "  0x%016lx ", (unsigned long)pcs[i]);
        symbol_print(o, i == 0 ? pcs[i] : pcs[i] - 1);
        out_str(o, "\n");
    }
}

/* The frame that returns to `from`; the innermost where there is none, as on the runtime's own
 * stacks. */
static int frame_of(const uintptr_t *pcs, int n, uintptr_t from) {
    for (int i = 0; from && i < n; i++)
        if (pcs[i] == from) return i;
    return 0;
}

static void print_creator(Out *o, G *gp) {
    if (gp->created_at == 0 || gp->id == 1) return;
    out_str(o, "  created by ");
    symbol_print(o, gp->created_at - 1);
    if (gp->parent) out_fmt(o, " in goroutine %u", gp->parent);
    Named entry = symbol_of(g_entry(gp)); /* a tail call may have removed its frame */
    if (entry.name) out_fmt(o, " with %s", entry.name);
    out_str(o, "\n");
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void print_head(Out *o, G *gp, uint32_t status) {
    char name[32];
    g_name(gp, name);
    out_fmt(o, "goroutine %lu ", (unsigned long)gp->id);
    if (name[0]) out_fmt(o, "\"%s\" ", name);
    out_fmt(o, "[%s, ", status_text(status, gp->reason));
    print_age(o, load_rlx(&gp->since));
    if (gp->lock_depth) out_str(o, ", locked to thread");
    out_str(o, "]:\n");
}

static void dump_g_from(Out *o, G *gp, void *context, uintptr_t from) {
    uintptr_t pcs[FRAMES];
    uint32_t status = load_acq(&gp->status);
    print_head(o, gp, status);
    int n = backtrace_g(gp, context, pcs, FRAMES);
    if (n > 0) print_frames(o, pcs, frame_of(pcs, n, from), n);
    else if (status == G_RUNNING) out_str(o, "  (running on another thread)\n");
    else if (gp->sp == NULL && gp->fn) {
        out_str(o, "  (has not run yet) ");
        symbol_print(o, g_entry(gp));
        out_str(o, "\n");
    }
    print_creator(o, gp);
    out_str(o, "\n");
}

void dump_g(Out *o, G *gp, void *context) { dump_g_from(o, gp, context, 0); }

typedef struct Walk {
    Out *out;
    G *first; /* printed already: the current goroutine stands first, as in Go */
} Walk;

static bool listed(G *gp) {
    uint32_t status;
    return g_exists(gp, &status) && !(gp->flags & GF_SYSTEM);
}

static void dump_one(G *gp, void *arg) {
    Walk *w = arg;
    if (gp != w->first && listed(gp)) dump_g(w->out, gp, NULL);
}

void dump_all_from(int fd, uintptr_t from) {
    char buf[2048];
    Out o = OUT(fd, buf);
    M *m = getm();
    Walk w = {.out = &o};
    if (m && m->curg && listed(m->curg)) w.first = m->curg;
    if (w.first) dump_g_from(&o, w.first, NULL, from);
    each_g(dump_one, &w);
    out_flush(&o);
}

void dump_to(Out *o) {
    Walk w = {.out = o};
    each_g(dump_one, &w);
}

void dump_all(int fd) { dump_all_from(fd, 0); }

EXPORT void gort_dump(int fd) {
    if (!in_forked_child()) dump_all_from(fd, (uintptr_t)__builtin_return_address(0));
}
