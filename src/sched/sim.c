/*
 * Simulation. With GORT_SIM=seed one thread runs goroutines, and everything that is otherwise left
 * to chance or to the clock is drawn from the seed: which runnable goroutine is next, at which
 * synchronisation points others come first, the order of a select. So a failure found with one seed
 * happens again with it, under a debugger too. gort-explore tries many seeds.
 *
 * The fast paths do not know of it:
 *
 *   one P                 procs is 1, gort_maxprocs() does not change it; the monitor neither
 *                         preempts nor retakes from code that has announced nothing
 *   points                the P's M has ATTN_SIM set for good. So every section that begins or ends
 *                         takes the slow way of preemption (preempt.c), which ends here; and every
 *                         direct switch, which is for Ms without attention, goes by g0
 *   the next goroutine    find.c asks sim_pick() instead of the queues in their order
 *   time                  os_now() is a number that grows by a microsecond when a goroutine looks,
 *                         and jumps to the next timer when all wait
 *
 * One of 2, 8 or 32 points lets others run, by the seed: some bugs need many switches, others one
 * at the right moment. With every other seed the next goroutine is any; with the rest that of the
 * highest rank, and ranks are drawn anew where others are let run: one may come far before another
 * begins, which a walk by single steps seldom does. GORT_SIM=seed:n lets only the first n points do
 * so and then takes the goroutines in turn. GORT_SIM_LOG=file lists every switch: when, who, and
 * where it goes on.
 *
 * Where a whole program's threads are goroutines, not each section is a point but each hooked call,
 * once (sim_hooked): what the hook does within is nobody's business.
 *
 * A goroutine that polls passes a thousand points in a row, or calls sched_yield: then time passes
 * and others run, whatever the seed says. The poller is asked at each switch.
 *
 * What comes from outside is not simulated: descriptors, signals, blocking calls and plain threads
 * are waited for in real time (a moment, before the clock jumps), and their order is not repeated.
 *
 * Only the holder of the P comes here, one at a time; any thread may read the clock.
 */
#include "sched/sim.h"
#include "sched/body.h"
#include "sched/deadlock.h"
#include "sched/describe.h"
#include "base/env.h"
#include "sched/globalq.h"
#include "sched/schedule.h"
#include "base/print.h"
#include "base/upstairs.h"
#include "sched/netpoll.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/sysmon.h"
#include "sched/trace.h"
#include "unwind/line.h"
#include "unwind/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BEGIN (1000 * GORT_SEC) /* the same for every run */
#define LONGEST (24 * 3600 * GORT_SEC)
#define MOST_STEPS 20000000u
#define SPIN (50 * GORT_US) /* of virtual time, for a goroutine that polls, alone */
#define MOST_POINTS 1000    /* in a row: it polls */
#define PATIENCE 40         /* looks of 50 us for what comes from outside */

bool sim_on;

static struct {
    uint64_t rng;
    int64_t clock;   /* atomic */
    uint32_t odds;   /* one of so many points lets others run */
    uint64_t yields; /* points that did */
    uint32_t steps, looks;
    uint32_t points; /* that the goroutine has passed since the last switch */
    uint64_t last;   /* the goroutine that ran */
    bool ranked;     /* the next one is that of the highest rank */
    uint64_t ranks;
    bool asked; /* by the hook */
    int log;    /* -1: none */
} sim;

static uint64_t draw(uint64_t n) { return (random_next(&sim.rng) >> 11) % n; }

static int64_t sim_now(void);
static int64_t sim_to_real(int64_t deadline, int64_t real_now);
static const OsClock virtual_clock = {sim_now, sim_to_real};

void sim_begin(void) {
    sim_on = settings.sim != 0;
    if (!sim_on) return;
    memset(&sim, 0, sizeof sim);
    sim.rng = (settings.sim + 1) * 0x9E3779B97F4A7C15ULL | 1;
    for (int i = 0; i < 8; i++) random_next(&sim.rng); /* so that close seeds differ at once */
    sim.clock = BEGIN;
    os_clock = &virtual_clock;
    sim.odds = 2u << 2 * draw(3);
    sim.ranked = draw(2) != 0;
    sim.ranks = random_next(&sim.rng);
    sim.log = -1;
    const char *path = env_get("GORT_SIM_LOG");
    if (path && *path) {
        sim.log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (sim.log < 0) print_fd(2, "gort: GORT_SIM_LOG=%s ignored: %s\n", path, strerror(errno));
    }
    settings.procs = 1;
    settings.procs_from_env = true;
    settings.asyncpreemptoff = true;
    settings.retake = 1;
    settings.migrate = false;
}

void sim_end(void) {
    if (sim_on && sim.log >= 0) close(sim.log);
    sim_on = false;
    os_clock = NULL;
}

/* Never back: a plain thread that has waited for a deadline moves it, too. */
static void clock_to(int64_t when) {
    int64_t now = load_rlx(&sim.clock);
    while (now < when && !cas_seq(&sim.clock, &now, when)) {}
}

void sim_waited(int64_t deadline) { clock_to(deadline); }

static int64_t sim_now(void) {
    M *m = getm();
    if (m == NULL || m->plain || m->p == NULL) return load_rlx(&sim.clock); /* not a goroutine */
    return add_rlx(&sim.clock, GORT_US);
}

static int64_t sim_to_real(int64_t deadline, int64_t real_now) {
    if (deadline == GORT_FOREVER || deadline <= 0) return deadline;
    return time_after(real_now, time_left(deadline, load_rlx(&sim.clock)));
}

/* The library's, or the hook's. */
static bool of_library(const Named *at) {
    if (strncmp(at->name, "gort_", 5) == 0) return true;
    return at->module && strncmp(module_name(at->module), "libgort", 7) == 0;
}

/* Where in the program gp goes on: its first frame outside the library, and the call it made.
 * False: it has none. */
static bool print_place(Out *o, G *gp) {
    uintptr_t pcs[24];
    const char *call = NULL;
    int n = backtrace_g(gp, NULL, pcs, count_of(pcs));
    for (int i = 0; i < n; i++) {
        Named at = symbol_of(pcs[i] - 1);
        if (at.name == NULL) continue;
        if (of_library(&at)) {
            call = at.name;
        } else if (call) {
            out_fmt(o, "%s in %s+0x%lx", call, at.name, (unsigned long)at.offset + 1);
            line_print(o, pcs[i] - 1, " ", "");
            return true;
        }
    }
    return false;
}

static void list_switch(G *gp) {
    char buf[512];
    Out o = OUT(-1, buf);
    int64_t us = (load_rlx(&sim.clock) - BEGIN) / GORT_US;
    out_fmt(&o, "%6u %8lu.%06lu s  goroutine %4lu  ", sim.steps, (unsigned long)us / 1000000,
            (unsigned long)us % 1000000, (unsigned long)gp->id);
    size_t before = o.used;
    out_str(&o, "goes on: ");
    if (gp->sp == NULL || !print_place(&o, gp)) {
        Named entry = symbol_of(g_entry(gp));
        bool begins = gp->sp == NULL || has_body(gp);
        o.used = before;
        out_fmt(&o, "%s: %s", begins ? "starts" : "goes on", entry.name ? entry.name : "?");
    }
    if (gp->sp && gp->reason != WAIT_NONE) out_fmt(&o, " [%s]", reason_text(gp->reason));
    out_str(&o, "\n");
    write_all(sim.log, buf, o.used);
}

void sim_adopt(M *m) {
    or_seq(&m->attn, ATTN_SIM);
    m->rng = random_next(&sim.rng) | 1; /* the order of selects */
}

static bool alone(M *m) { return global_count() == 0 && runq_empty(m->p); }

/* It looks at something that another is to change. True: time passes, and others run. */
static bool spins(M *m) {
    if (++sim.points < MOST_POINTS) return false;
    sim.points = 0;
    clock_to(load_rlx(&sim.clock) + SPIN);
    return !alone(m) || timers_first() <= load_rlx(&sim.clock);
}

M *sim_point(M *m) {
    if (m->p == NULL || (body_leads && !sim.asked)) return m;
    sim.asked = false;
    bool forced = sim.yields < settings.sim_yields && draw(sim.odds) == 0 && !alone(m);
    if (!forced && !spins(m)) return m;
    sim.yields += forced;
    sim.ranks = random_next(&sim.rng);
    G *gp = m->curg;
    bump(&m->p->n.preemptions, 1);
    trace_preempt(m, gp);
    lock(&sched.lock, RANK_SCHED);
    store_rlx(&gp->status, G_RUNNABLE);
    gp->reason = WAIT_NONE;
    glist_push(&sched.global, gp);
    return switch_to_g0(m, gp, NULL, NULL, &sched.lock);
}

NOINLINE void sim_call(void) {
    M *m = getm();
    if (m != NULL && m->locks == 0) leave(enter());
}

bool sim_yield(void) {
    M *m = enter();
    if (alone(m)) clock_to(load_rlx(&sim.clock) + SPIN);
    leave(m);
    gort_yield();
    return true;
}

int64_t sim_elapsed(void) { return sim_now() - BEGIN; }

void sim_hooked(void) {
    sim.asked = true;
    sim_call();
    sim.asked = false;
}

static G *take_nth(GList *l, uint64_t k) {
    GList before = {0};
    while (k-- > 0) glist_push(&before, glist_pop(l));
    G *gp = glist_pop(l);
    glist_prepend(l, &before);
    return gp;
}

static uint64_t rank_of(const G *gp) {
    uint64_t x = (sim.ranks ^ gp->id) * 0x9E3779B97F4A7C15ULL;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9ULL >> 8;
}

/* Whoever gave way is last, whatever its rank. */
static uint64_t highest_rank(void) {
    uint64_t best = 0, rank, most = 0, i = 0;
    for (const G *gp = sched.global.head; gp; gp = gp->schedlink, i++)
        if ((rank = gp->id == sim.last ? 1 : 2 + rank_of(gp)) > most) {
            most = rank;
            best = i;
        }
    return best;
}

/* At each switch: what a goroutine has written, another may read right after. */
static void sim_poll(M *m) {
    GList list = {0};
    netpoll(0, &list);
    uint32_t n = list.count;
    if (n == 0) return;
    count(m, netpoll_wakeups, n);
    ready_list(m, &list);
    sysmon_uncount(&sched.poll_waiters, n);
}

G *sim_pick(M *m) {
    GList local = {0};
    if (load_rlx(&sched.poll_waiters)) sim_poll(m);
    if (++sim.steps > MOST_STEPS) fatal("simulation: no end after %u switches", MOST_STEPS);
    lock(&sched.lock, RANK_SCHED);
    runq_drain(m->p, &local);
    glist_append(&sched.global, &local);
    global_flatten_locked();
    uint32_t n = sched.global.count;
    bool in_turn = sim.yields >= settings.sim_yields;
    G *gp = n == 0 ? NULL
                   : take_nth(&sched.global, in_turn      ? 0
                                             : sim.ranked ? highest_rank()
                                                          : draw(n));
    unlock(&sched.lock);
    store_rlx(&sched.coarse, load_rlx(&sim.clock));
    if (gp == NULL) return NULL;
    sim.looks = sim.points = 0;
    if (sim.log >= 0 && gp->id != sim.last) list_switch(gp);
    sim.last = gp->id;
    return gp;
}

static bool something_outside(void) {
    return load_rlx(&sched.poll_waiters) != 0 || load_acq(&sched.in_syscall) != 0 ||
           load_rlx(&sched.taken) != 0 || outsider_there() || load_rlx(&sched.signal_channels) != 0;
}

bool sim_idle(M *m) {
    int64_t next = timers_first();
    /* false: the thread goes to the poller or the pool */
    if (next == GORT_FOREVER || !load_rlx(&sched.running)) return false;
    if (something_outside() && sim.looks++ < PATIENCE) {
        os_nap(50 * GORT_US);
        return true;
    }
    sim.looks = 0;
    if (next - BEGIN > LONGEST) fatal("simulation: a day of virtual time has passed");
    clock_to(next);
    return true;
}
