/*
 * Goroutines under the checker: each thread of the checker is an M with a P of its own, which runs
 * one goroutine, on a stack of its own, by the library's own sched.c: park, ready, deadlines, the
 * switch and what is done behind it are the real ones. The run queues are not there (they are
 * ring.c's matter): an M belongs to its goroutine (m->lockedg), and waits on g0 until that one is
 * runnable again; a spare M, where there is one, takes any, so that a goroutine may run on while
 * the thread it left is still busy behind the switch.
 *
 * Found out here, whatever the model: a goroutine that is made ready before it has left its stack,
 * or twice; whatever check() and the lock ranks say, since the code is compiled as in a
 * debug build; memory of a channel or a timer used after it was freed, which holds nonsense then;
 * and frames used after their call has returned (scribble).
 */
#ifndef HOUSE_H
#define HOUSE_H

#define GORT_CHECKED 1
#define RING 4
#define GORT_NO_PROBES 1
#define MODEL_RESUMES 1
#include "model.h"

#include "runtime.h"
#include "mem/stack.h"

#include <stdarg.h>

enum { MS = MC_THREADS };
static M ms[MS];
static P ps[MS];
static G gs[MS];
__thread M *tls_m;
static int errnos[MS];
static void model_resumes(int i) { tls_m = &ms[i]; }

/* ---- in place of runq.h: whoever is queued is found ---- */
#define RUNQ_H
static uint32_t queued[MS]; /* by goroutine */
static void must_have_left(G *gp) {
    for (int i = 0; i < mc_count; i++) {
        char *sp = mc_threads[i].sp;
        bool on_its_stack = sp < (char *)gp->stack && sp >= (char *)gp->stack - MC_STACK;
        MUST(!on_its_stack); /* made ready before it has left its stack */
    }
    MUST(!queued[gp - gs]);
}
INLINE bool runq_alone(void) { return false; }
INLINE bool runq_push(P *p, G *gp) {
    must_have_left(gp);
    store_rel(&queued[gp - gs], 1);
    return true;
}
INLINE G *runnext_swap(P *p, G *gp) {
    must_have_left(gp);
    xchg_seq(&queued[gp - gs], 1);
    return NULL;
}
INLINE bool runnext_take(P *p, G *gp) { return false; }
INLINE G *runq_pop(P *p) { return NULL; }
INLINE bool runq_overflow(P *p, G *gp, GList *list) { return true; }

#include "base/lockrank.c"
#include "sched/sched.c"
#include "sched/ender.c"

Sched sched;
Settings settings;
bool sim_on;
int hint_passed(int64_t deadline) { return -ETIMEDOUT; }
struct Process process = {.same = true};
bool forked_slow(void) { return false; }
void vfork_stops(M *m) {}
uint32_t trace_on, sysmon_sleeps;
struct Split split;
struct Slots slots;

void fatal(const char *format, ...) {
    static char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    wrong(text);
}
NORETURN void exit_hook_jumped(void) {
    wrong("longjmp");
    __builtin_trap();
}
int64_t os_now(void) { return 0; }
void os_yield(void) {}
void os_nap(int64_t ns) {}
void soft_close(M *m) {}
void handoff_p(M *m, P *p) {}
P *m_release_p(M *m) { return m->p; }
/* who has yielded is in the global queue, and its stack is left: it is found */
void wake_after_submit(M *m) {
    lock(&sched.lock, RANK_SCHED);
    for (G *gp; (gp = glist_pop(&sched.global)) != NULL;) runq_push(NULL, gp);
    unlock(&sched.lock);
}
void wakep(M *m) {}
M *m_adopt(void) { wrong("a thread without an M"); }
M *enter_asked(M *m) { wrong("attention"); }
M *enter_again(M *m) { wrong("attention"); }
M *enter_first(void) { wrong("a thread without an M"); }
void leave_slow(M *m) { wrong("attention"); }
G *global_get_locked(P *p, uint32_t max) { return NULL; }
bool global_join_locked(P *p) { return false; }
G *find_runnable(M *m) { return NULL; }
void m_stop(M *m) { wrong("a thread without its goroutine"); }
void home_send(M *m, G *gp) { wrong("a goroutine on another's thread"); }
#include "bodies.h"
void soft_lock(M *m, G *gp) { m->lockedg = gp; }
bool soft_send(M *m, G *gp) { return false; }
void split_resume(G *gp) {}
Stack *compact_get(M *m) { return NULL; }
Stack *stack_get(M *m) { return NULL; }
void goroutine_entry(void *arg) {}
void global_put(G *gp) { runq_push(NULL, gp); }
void global_put_list(GList *list) {
    for (G *gp; (gp = glist_pop(list)) != NULL;) runq_push(NULL, gp);
}
void global_spill(GList *list) { global_put_list(list); }
void sim_waited(int64_t deadline) {}
M *idle_m_get_locked(void) { return NULL; }
void maker_want_spare_locked(void) {}
void trace_put(M *m, int kind, uint64_t g, int x) {}
void trace_put_start(M *m, G *gp, bool direct) {}
void trace_put_block(M *m, G *gp, int reason) {}
void trace_put_ready(M *m, G *gp) {}

/* On g0: a goroutine to run. A thread takes its own only; the spare one takes any. */
static bool ended[MS];
static int goroutines;
static G spare; /* whose thread that is */

static G *runnable(M *m) {
    for (int i = 0; i < MS; i++)
        if (queued[i] && (m->lockedg == &spare || m->lockedg == &gs[i])) return &gs[i];
    return NULL;
}
static bool over(M *m) {
    int n = 0;
    for (int i = 0; i < MS; i++) n += ended[i];
    return m->lockedg == &spare ? n == goroutines : ended[m->lockedg - gs];
}
static bool has_something(void *m) { return runnable(m) || over(m); }

G *home_wait(M *m) {
    for (int i = 0; i < MS; i++) mc_looks_at(&queued[i]);
    mc_wait(has_something, m);
    G *gp = runnable(m);
    if (gp) queued[gp - gs] = 0;
    else m->dying = true;
    return gp;
}

/* ---- goroutines ---- */

static void (*bodies[MS])(void);

/* Overwrites what the call just made has left below: whoever still has a pointer there is in for
 * nonsense. */
static NOINLINE void scribble(void) {
    volatile char below[800];
    for (size_t i = 0; i < sizeof below; i++) below[i] = 0x55;
}

static void gone(M *m, void *gp) { ended[(G *)gp - gs] = true; }
static __attribute__((noinline)) void goroutine_begin(G *gp) {
    mc_stack_begins(__builtin_frame_address(0));
    finish_switch(getm());
    leave(getm());
    bodies[gp - gs]();
    M *m = enter();
    m->dying = true;
    leave_for_good(m, gone, gp);
}
static void goroutine_body(void *gp) {
    mc_forget_registers();
    goroutine_begin(gp);
}
static void thread_of_goroutine(void) { schedule_loop(getm()); }

/* One more thread with a goroutine that does body(). */
static void add_goroutine(void (*body)(void)) {
    int i = mc_count;
    M *m = &ms[i];
    G *gp = &gs[i];
    char *hi = mc_stack(&gp->sp);
    bodies[i] = body;
    *gp = (G){.id = (uint64_t)i + 1, .status = G_RUNNABLE, .stack = (Stack *)hi};
    *m = (M){.locks = 1,
             .id = (uint32_t)i,
             .errno_at = &errnos[i],
             .lockedg = gp,
             .detour = gp,
             .p = &ps[i]};
    ps[i] = (P){.status = P_RUNNING, .m = m};
    gp->sp = arch_first_frame(hi, goroutine_body, gp);
    queued[i] = 1;
    goroutines++;
    tls_m = m;
    mc_spawn_on(thread_of_goroutine, &m->g0sp);
}

/* A thread that runs whoever is runnable, so that a goroutine may go on while the thread it left is
 * still busy with what it had to do behind the switch. */
static void add_spare(void) {
    int i = mc_count;
    ms[i] = (M){.locks = 1,
                .id = (uint32_t)i,
                .errno_at = &errnos[i],
                .lockedg = &spare,
                .detour = &spare,
                .p = &ps[i]};
    ps[i] = (P){.status = P_RUNNING, .m = &ms[i]};
    mc_spawn_on(thread_of_goroutine, &ms[i].g0sp);
}

/* A plain thread (with a pseudo-G), or one that only fires timers (has a P all the same). */
static void add_thread(void (*body)(void), bool plain) {
    int i = mc_count;
    gs[i] = (G){.flags = GF_THREAD};
    ms[i] = (M){.locks = plain ? 0 : 1,
                .errno_at = &errnos[i],
                .plain = plain,
                .curg = plain ? &gs[i] : NULL,
                .p = plain ? NULL : &ps[i]};
    ps[i] = (P){.status = P_RUNNING, .m = &ms[i]};
    bodies[i] = body;
    mc_spawn(body);
}

static void house_reset(void) {
    memset(&sched, 0, offsetof(Sched, ps));
    memset(ended, 0, sizeof ended);
    memset(gs, 0, sizeof gs);
    memset(queued, 0, sizeof queued);
    sched.procs = MS;
    sched.running = 1;
    goroutines = 0;
}

static uint64_t house_hash(uint64_t h) {
    for (int i = 0; i < mc_count; i++) {
        h = MIX(h, gs[i]);
        h = mix(mix(mix(h, ms[i].locks), WORD(ms[i].curg)), WORD(ms[i].unlock));
        h = mix(mix(mix(h, WORD(ms[i].commit)), WORD(ms[i].commit_arg)), ended[i]);
        h = mix_bytes(h, ms[i].held, ms[i].nheld * sizeof ms[i].held[0]);
        h = mix(mix(mix(h, ms[i].nheld), ms[i].dying), queued[i]);
    }
    return h;
}

#endif
