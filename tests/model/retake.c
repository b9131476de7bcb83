/*
 * A P is taken from its thread: the announced call and the monitor's hand-over, the silent retake,
 * preemption by flag and by signal (src/sched/retake.c, src/sched/syscall.c, src/sched/preempt.c,
 * src/sched/sysmon.c's look at a P), and all that gives the P a thread and the goroutine a P again.
 * All as they stand; it is the scheduler itself (whole.h), with one P.
 *
 * Two Ms: one runs a goroutine that enters a call, or only goes in and out of sections, or
 * computes; the other waits in the pool. A monitor looks at the P. In some scenes a second
 * goroutine waits in the P's queue. What has to hold: a P has one owner whenever somebody is in a
 * section (enter() and leave() check it, and so do the goroutines here), no goroutine runs twice or
 * is lost, all come to their end, and in the end the P is idle, in one place, with no request,
 * count or PENDING left behind.
 *
 * Sections begin by a plain store to m->locks and a plain load behind it; the store waits in the
 * thread's buffer like any other (mc_watch), and membarrier empties the buffers of all. So the
 * barrier left out is found, and so is each step of the protocol. A signal arrives where a
 * goroutine says so (computes()), in a section and outside.
 *
 * Not modelled: what tells the monitor that a thread sleeps (its clock, /proc): the takes here come
 * at any time, as under GORT_DEBUG=retake=hammer; stop-the-world; a maker that is slow: a P that
 * waits for a thread gets the next that is idle.
 */
#define MODEL_BARRIER 1
enum { MS = 2, PS = 1, GS = 2, MONITOR = MS };
#include "whole.h"

#define the_p all_ps[0]
void netpoll(int64_t deadline, GList *list) { wrong("the network"); }
void netpoll_break(void) { wrong("the network"); }
bool nopreempt_covers(uintptr_t pc) { return false; }
bool in_any_child(void) { return false; }
long arch_call_guarded(long (*fn)(void *), void *arg) { return fn(arg); } /* nothing is thrown */

static int in_section; /* threads that use the P now */
static bool sent[MS];  /* a signal is on its way to that thread */

/* What a goroutine does. In a section it has the P for itself. */
static void section(void) {
    mc_point(MC_NOTHING, NULL, 0, 0, 0); /* the program's own code before it */
    M *m = enter();
    MUST(m->p == &the_p && in_section++ == 0);
    mc_point(MC_NOTHING, NULL, 0, 0, 0);
    MUST(m->p == &the_p && m->p->m == m && --in_section == 0 && m->curg->m == m);
    leave(m);
}
static void two_sections(void) {
    section();
    section();
}
static void section_and_code(void) {
    section();
    mc_point(MC_NOTHING, NULL, 0, 0, 0);
}
static void announced_call(void) {
    gort_enter_syscall();
    mc_point(MC_NOTHING, NULL, 0, 0, 0); /* the kernel */
    gort_exit_syscall();
    section();
}
static void blocking_call(void) {
    M *m = enter();
    m = block_begin(m);
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    m = block_end(m);
    leave(m);
    section();
}

/* Back from one call, and gone into the next, which lasts: the P is idle, is not, and is again,
 * with nobody to come for it. */
static bool in_call_now;
static bool is_in_call(void) { return in_call_now; }
static bool first_has_p(void) { return ms[0].p != NULL; }
static bool one_searches(void) { return sched.spinning == 1; }
static bool never(void *arg) { return false; }
static void calls_that_last(void) {
    M *m = enter();
    m = block_begin(m);
    in_call_now = true;
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    m = block_end(m);
    m = block_begin(m);
    mc_wait(never, NULL);
}
/* Plain threads: one has something to run, one wakes somebody for what another has taken by now. */
static void submits(void) {
    global_put(&gs[1]);
    wake_after_submit(getm());
}
static void wakes_for_nothing(void) { wake_after_submit(getm()); }

/* Outside of sections, where the kernel may deliver what was sent. */
int os_tgkill(int tid, int signo) {
    sent[tid] = true;
    return 0;
}
bool thread_asked(M *m) { return true; }
bool os_thread_blocks(int tid, int signo) { return false; }
void arch_repair_eintr(void *context) {}
void arch_end_call(void *context) {}
void warn_once(int which, const char *format, ...) {}
void stack_jump_found(G *gp, uintptr_t sp) {}
long os_sys(long nr, long a, long b, long c, long d, long e, long f) { return 0; }
bool thread_awake(M *m) { return true; }
bool thread_asleep(M *m, int64_t cpu) { return false; }
void thread_seen(M *m, int64_t cpu) {}
static void computes(void) {
    static siginfo_t info;
    static ucontext_t context;
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    int tid = getm()->tid;
    if (!sent[tid]) return;
    info.si_code = SI_TKILL;
    info.si_pid = os_getpid();
    sent[tid] = false;
    on_signal(SIGURG, &info, &context);
}
/* It may come in a section too, and is to be left for the end of it then. */
static void computes_and_enters(void) {
    computes();
    M *m = enter();
    MUST(m->p == &the_p && in_section++ == 0);
    computes();
    MUST(m->p == &the_p && m->p->m == m && --in_section == 0 && getm() == m);
    leave(m);
    computes();
}

/* ---- the monitor ---- */

static void looks_at_p(void) {
    P *p = &the_p;
    p->seen_syscalltick = 1; /* it has seen this call at its last look */
    retaker_lock();
    look_at(p, 1);
    retaker_unlock();
}
static void hammers(void) {
    retaker_lock();
    hammer();
    retaker_unlock();
}
static void hammers_twice(void) {
    hammers();
    hammers();
}
static void preempts(void) {
    M *m = load_rlx(&the_p.m);
    if (m) preempt_m(m);
}
static void preempts_twice(void) {
    preempts();
    preempts();
}
/* Takes it while it would sleep, then finds it computing: R7. */
static void takes_and_stops(void) {
    hammers();
    for (int i = 0; i < MS; i++)
        if (load_rlx(&ms[i].attn) & ATTN_TAKEN) preempt_m(&ms[i]);
}
static void does_nothing(void) {}

static const struct Scene {
    const char *name;
    void (*first)(void), (*second)(void), (*monitor)(void);
    bool large; /* with the argument "all" only */
    /* a thread brings the second one, when the first is in its call, which lasts; NULL: it is
     * queued from the beginning */
    void (*submits)(void);
} scenes[] = {
    {"preempted by flag", two_sections, section, preempts, false, NULL},
    {"preempted by signal", computes_and_enters, section, preempts, false, NULL},
    {"a call that hands off at once", blocking_call, section, does_nothing, true, NULL},
    {"one submits, one wakes for nothing", calls_that_last, does_nothing, wakes_for_nothing, false,
     submits},
    {"silent", section, NULL, hammers, false, NULL},
    {"an announced call, somebody waits", announced_call, section, looks_at_p, false, NULL},
    {"an announced call, hammered", announced_call, NULL, hammers, true, NULL},
    {"taken, then stopped by signal", computes, NULL, takes_and_stops, true, NULL},
    {"two signals", computes_and_enters, computes, preempts_twice, true, NULL},
    {"silent, and code behind it", section_and_code, NULL, hammers, true, NULL},
    {"silent, somebody waits", section, section, hammers, true, NULL},
    {"silent, twice", section_and_code, NULL, hammers_twice, true, NULL},
    {"an announced call, hammered, somebody waits", announced_call, section, hammers, true, NULL},
    {"two calls that hand off at once", blocking_call, blocking_call, does_nothing, true, NULL},
    {"taken, then stopped, somebody waits", computes, section, takes_and_stops, true, NULL},
};
static const struct Scene *scene;

static bool first_begins(void) { return begun != 0; }
static void monitor(void) { scene->monitor(); }

static void model_reset(void) {
    whole_reset();
    in_section = 0;
    memset(sent, 0, sizeof sent);
    retake_works = true;
    add_g(0, scene->first);
    add_g(1, scene->second);
    holds_p(0);
    ms[0].nextg = &gs[0];
    if (scene->second && !scene->submits) runq_push(&the_p, &gs[1]);
    in_call_now = false;
    mon.m = &ms[MONITOR];
    for (int i = 0; i < MS; i++) add_m(i);
    mc_spawn(monitor);
    if (scene->submits) mc_spawn(scene->submits);
    mc_advance(1, NULL);                                       /* in the pool */
    mc_advance(0, scene->submits ? is_in_call : first_begins); /* the goroutine's first step */
    if (scene->submits) {
        mc_advance(1, NULL);               /* the P came to it, and is idle */
        mc_advance(MONITOR, one_searches); /* about to take it */
        mc_advance(0, first_has_p);        /* which it does not: this one comes first */
    }
}

static void model_end(void) {
    MUST(ended[0] == !scene->submits && ended[1] == (scene->second != NULL));
    MUST(sched.idle_ps == &the_p && sched.npidle == 1 && the_p.link == NULL && the_p.m == NULL &&
         the_p.status == P_IDLE);
    MUST(pending == NULL && ms[0].nextp == NULL && ms[1].nextp == NULL && ms[0].p == NULL &&
         ms[1].p == NULL);
    MUST(sched.taken == 0 && sched.in_syscall == (scene->submits != NULL) && sched.spinning == 0 &&
         sched.global.count == 0);
    for (int i = 0; i < MS; i++)
        MUST(!(ms[i].attn & (ATTN_PENDING | ATTN_TAKEN)) && ms[i].locks == 1);
}

static uint64_t model_hash(uint64_t h) {
    return mix(MIX(whole_hash(h), sent), (uint64_t)in_section);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        bool all = argc > 1 && strcmp(argv[1], "all") == 0;
        if (argc > 1 && !all ? (size_t)atoi(argv[1]) != i : scenes[i].large && !all) continue;
        scene = &scenes[i];
#ifdef BREAK
        settings.break_step = BREAK;
#endif
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
