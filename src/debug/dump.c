/*
 * Every goroutine as text: what a stuck program says.
 *
 *     goroutine 7 "name" [chan receive, 12ms]:
 *       0x000055e0a1b2c3a0 gort_chan_recv+0x1f (app)
 *       0x000055e0a1b2c3d4 recv_loop+0x54 app.c:34 (app)
 *       created by start_all+0x31 app.c:51 (app) in goroutine 1 with recv_loop
 *
 * fatal() and handlers dump with any lock held. So a dump takes no lock, allocates nothing and
 * trusts nothing. Goroutines may run, park and end meanwhile. G records are type-stable (g.c) and M
 * records are never freed, so they can always be read; what is read may be a moment old. Stacks are
 * read by read_memory(): a page that was just given back is an error, not a fault. A trace during
 * which the goroutine's status or ticket changed is dropped (describe.c).
 *
 * A goroutine that runs on another thread is asked by signal (capture.c). A goroutine in a blocking
 * call is unwound from where it announced the call: those frames stay valid until it is back.
 */
#include "debug/dump.h"
#include "debug/frames.h"
#include "debug/stats.h"
#include "sched/g.h"
#include "sched/sched.h"
#include "unwind/symbols.h"

void out_age(Out *o, int64_t ns, int seconds) {
    int64_t ms = ns < 0 ? 0 : ns / GORT_MS;
    if (ms < seconds * 1000) out_fmt(o, "%ldms", ms);
    else if (ms < seconds * 60000) out_fmt(o, "%lds", ms / 1000);
    else out_fmt(o, "%ldm", ms / 60000);
}

/* The index of the frame whose pc is `from`; 0 where there is none, as on the runtime's stacks. */
static int frame_of(const Frames *f, uintptr_t from) {
    for (int i = 0; from && i < f->n; i++)
        if (f->pcs[i] == from) return i;
    return 0;
}

void out_creator(Out *o, uintptr_t created_at, uint32_t parent, uintptr_t entry) {
    out_str(o, "created by ");
    symbol_print(o, created_at - 1);
    if (parent) out_fmt(o, " in goroutine %u", parent);
    Named function = symbol_of(entry); /* a tail call may have removed its frame */
    if (function.name) {
        out_str(o, " with ");
        symbol_name_print(o, function.name);
    }
    out_str(o, "\n");
}

static void print_head(Out *o, G *gp, uint32_t status) {
    char name[32];
    g_name(gp, name);
    out_fmt(o, "goroutine %lu ", gp->id);
    if (name[0]) {
        out_str(o, "\"");
        out_plain(o, name);
        out_str(o, "\" ");
    }
    out_fmt(o, "[%s, ", status_text(status, gp->reason));
    int64_t since = load_rlx(&gp->since);
    out_age(o, since ? os_now() - since : 0, 10);
    if (gp->lock_depth) out_str(o, ", locked to thread");
    if (g_is_thread(gp)) out_str(o, ", a thread");
    out_str(o, "]:\n");
}

static void print_block(Out *o, G *gp, uint32_t status, const Frames *f, int first) {
    print_head(o, gp, status);
    if (f->n > 0) frames_print(o, f, first);
    else if (status == G_RUNNING) out_str(o, "  (running on another thread)\n");
    else if (gp->sp == NULL && gp->fn) {
        out_str(o, "  (has not run yet) ");
        symbol_print(o, g_entry(gp));
        out_str(o, "\n");
    }
    if (gp->created_at && gp->id != 1) {
        out_str(o, "  ");
        out_creator(o, gp->created_at, gp->parent, g_entry(gp));
    }
    out_str(o, "\n");
}

void dump_frames(Out *o, G *gp, const Frames *f) {
    print_block(o, gp, load_acq(&gp->status), f, 0);
}

static void dump_g_from(Out *o, G *gp, void *context, uintptr_t from) {
    Frames f;
    uint32_t status = load_acq(&gp->status);
    f.n = backtrace_g_folded(gp, context, f.pcs, f.more, FRAMES);
    print_block(o, gp, status, &f, frame_of(&f, from));
}

void dump_g(Out *o, G *gp, void *context) { dump_g_from(o, gp, context, 0); }

typedef struct Walk {
    Out *out;
    G *first; /* the current goroutine: printed before the walk, as in Go */
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

EXPORT void gort_dump(int fd) {
    if (!in_forked_child()) dump_all_from(fd, (uintptr_t)__builtin_return_address(0));
}
