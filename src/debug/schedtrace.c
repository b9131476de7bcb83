/* GORT_DEBUG=schedtrace=N,scheddetail=1: Go's lines, word for word where they mean the same. The
 * monitor prints them. It locks and stops nothing: each figure is true at the moment it is read,
 * but the lines are not of one moment. G, M and P records are never freed. */
#include "debug/reports.h"
#include "debug/dump.h"
#include "sched/g.h"
#include "sched/globalq.h"
#include "debug/stats.h"

static const char *yes(bool b) { return b ? "true" : "false"; }

static void out_id(Out *o, bool there, uint64_t id) {
    if (there) out_fmt(o, "%lu", id);
    else out_str(o, "nil");
}
static void out_m(Out *o, M *m) { out_id(o, m, m ? m->id : 0); }
static void out_p(Out *o, P *p) { out_id(o, p, p ? p->id : 0); }
static void out_g(Out *o, G *gp) {
    uint64_t id = gp ? load_rlx(&gp->id) : 0;
    out_id(o, id, id);
}

static void print_sched(Out *o, int64_t start_ns) {
    uint32_t procs = load_rlx(&sched.procs);
    bool need = global_count() > 0 && load_rlx(&sched.npidle) > 0 && load_rlx(&sched.spinning) == 0;
    out_fmt(o, "SCHED %ldms: gomaxprocs=%u idleprocs=%u threads=%u spinningthreads=%u ",
            (os_now() - start_ns) / GORT_MS, procs, load_rlx(&sched.npidle),
            load_rlx(&sched.threads), load_rlx(&sched.spinning));
    out_fmt(o, "needspinning=%d idlethreads=%u runqueue=%u [", need, load_rlx(&sched.idle_m_count),
            global_count());
    for (uint32_t i = 0; i < procs; i++) {
        P *p = load_acq(&sched.ps[i]);
        out_fmt(o, " %u", p ? p_queue(p) : 0);
    }
    out_str(o, " ]\n");
}

static void print_p(Out *o, P *p) {
    out_fmt(o, "  P%u: status=%u schedtick=%u syscalltick=%u m=", p->id, load_rlx(&p->status),
            load_rlx(&p->schedtick), load_rlx(&p->syscalltick));
    out_m(o, load_acq(&p->m));
    out_fmt(o, " runqsize=%u runnext=", p_queue(p));
    out_g(o, load_acq(&p->runnext));
    out_fmt(o, " timers=%u allocs=%lu frees=%lu watches=%lu", load_rlx(&p->timers.count),
            load_rlx(&p->n.allocs), load_rlx(&p->n.frees), load_rlx(&p->watches));
    out_fmt(o, " looks=%lu late=%lu\n", load_rlx(&p->looks), load_rlx(&p->late));
}

static void print_m(Out *o, M *m) {
    out_fmt(o, "  M%u: p=", m->id);
    out_p(o, load_rlx(&m->p));
    out_str(o, " curg=");
    out_g(o, load_rlx(&m->curg));
    out_fmt(o, " locks=%u spinning=%s blocked=%s lockedg=", load_rlx(&m->locks), yes(m->spinning),
            yes(load_rlx(&m->rest) != 0));
    out_g(o, load_rlx(&m->lockedg));
    out_str(o, "\n");
}

static void print_g(G *gp, void *arg) {
    Out *o = arg;
    uint32_t status;
    if (!g_exists(gp, &status)) return;
    out_fmt(o, "  G%lu: status=%u(%s) m=", load_rlx(&gp->id), status,
            status == G_WAITING ? reason_text(gp->reason) : "");
    out_m(o, status == G_RUNNING || status == G_SYSCALL ? load_rlx(&gp->m) : NULL);
    out_str(o, " lockedm=");
    out_m(o, gp->lock_depth ? load_rlx(&gp->home) : NULL);
    out_str(o, "\n");
}

static void print_detail(Out *o) {
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p) print_p(o, p);
    }
    for (M *m = load_acq(&sched.all_ms); m; m = load_acq(&m->all))
        if (load_acq(&m->alive)) print_m(o, m);
    each_g(print_g, o);
}

static int64_t started, printed; /* the monitor only */

static void schedtrace_begin(int64_t now) { started = printed = now; }

static int64_t schedtrace_due(int64_t now) {
    return settings.schedtrace ? time_after(printed, settings.schedtrace * GORT_MS) : GORT_FOREVER;
}

static void schedtrace_look(M *m, int64_t now) {
    if (schedtrace_due(now) > now) return;
    printed = now;
    char buf[8192]; /* the SCHED line of 1,024 Ps fits */
    Out o = OUT(2, buf);
    print_sched(&o, started);
    if (settings.scheddetail) print_detail(&o);
    out_flush(&o);
}

const MonitorClient schedtrace_client = {schedtrace_begin, schedtrace_look, schedtrace_due};
