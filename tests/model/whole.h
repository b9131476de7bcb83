/*
 * The scheduler itself under the checker: src/sched/sched.c, find.c, wake.c, bound.c, runq.c,
 * timer.c, lock.c, and what takes a P away: retake.c, preempt.c, syscall.c, sysmon.c. Each thread
 * of the checker but the last ones is an M in schedule_loop(); goroutines have stacks of their own
 * and run wherever they are found. What is left out (the maker, the world, soft homes, simulation,
 * traces) is never reached, or does nothing.
 *
 * The model gives MS, PS and GS (how many there are), netpoll() and netpoll_break().
 */
#ifndef WHOLE_H
#define WHOLE_H

#define GORT_CHECKED 1
#define GORT_NO_PROBES 1
#define RING 4
#define MODEL_RESUMES 1
#define MODEL_AFTER 0 /* what others may see early is named by mc_watch() */
#include "model.h"

#include "runtime.h"
static uint64_t drawn(uint64_t *state) { return (uint64_t)mc_pick(2); }
#define random_next drawn
#define lock_slow never_spins
#include "base/lock.c"
#undef lock_slow
#include "base/lockrank.c"
#include <sched/syscall.c>
#include <sched/find.c>
#include <sched/globalq.c>
#include <sched/bound.c>
#include <sched/preempt.c>
#include <sched/retake.c>
static int64_t thiefs_now(void) { /* its back-off is over at once */
    static int64_t now;
    return now += GORT_MS;
}
#define os_now thiefs_now
#include <sched/runq.c>
#undef os_now
#include <sched/sched.c>
#include <sched/ender.c>
#include <sched/sysmon.c>
#include <sched/timer.c>
#include <sched/wake.c>
#include <sched/slotwatch.c>

#include <stdarg.h>

#include "bodies.h"

/* ---- the rest of the house, as far as it is called ---- */

int inlibc_trap(G *gp, void *context) { return OUTSIDE; }

Settings settings = {.preempt_signal = SIGURG};
bool sim_on;
struct Process process = {.same = true};
bool forked_slow(void) { return false; }
void vfork_stops(M *m) {}
uint32_t trace_on;
struct Split split;
struct Slots slots;
__thread M *tls_m;

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
int64_t os_now(void) { return 1; }
void os_yield(void) {}
void os_nap(int64_t ns) {}
void *os_map(size_t size, bool stack) { return NULL; }
void os_unmap(void *at, size_t size) {}
void timer_forget(Timer *t) {}
int os_getpid(void) { return 1; }
#ifndef MODEL_ALARM
int os_alarm_set(int fd, int64_t when) { return 0; }
#endif
int64_t os_thread_cpu(int clock) { return -1; }
void world_stop_here(M *m) { wrong("the world stops"); }
void world_p_stopped_locked(P *p) { wrong("the world stops"); }
#ifndef MODEL_SOFT
G *soft_take(M *m) { return NULL; }
void soft_lock(M *m, G *gp) { m->lockedg = gp; }
bool soft_send(M *m, G *gp) { return false; }
void soft_requeue_locked(M *m) {}
#endif
M *sim_point(M *m) { return m; }
G *sim_pick(M *m) { return NULL; }
bool sim_idle(M *m) { return false; }
void sim_adopt(M *m) {}
void sim_waited(int64_t deadline) {}
void split_resume(G *gp) {}
void split_poison(M *m) {}
Stack *compact_get(M *m) { return NULL; }
Stack *stack_get(M *m) { return NULL; }
void goroutine_entry(void *arg) {}
void go_abandon(M *m, G *gp) { wrong("abandoned"); }
int hint_passed(int64_t deadline) { return -ETIMEDOUT; }
Sched sched;
Upstairs upstairs;
bool collect_on;
uint32_t collect_stopped;
#ifndef MODEL_SOFT
void soft_close(M *m) {}
#endif
M *m_adopt(void) { wrong("a thread without an M"); }
void capture_here(M *m, void *context) {}
void trace_put(M *m, int kind, uint64_t g, int x) {}
void trace_put_start(M *m, G *gp, bool direct) {}
void trace_put_block(M *m, G *gp, int reason) {}
void trace_put_ready(M *m, G *gp) {}
void trace_put_resume(M *m, G *gp) {}

/* The maker's list: one P. */
static P *pending;
static bool pending_searches;
void maker_pend_locked(P *p, bool spinning) {
    MUST(pending == NULL);
    pending = p;
    pending_searches = spinning;
}
P *maker_take_pending_locked(bool *spinning) {
    P *p = pending;
    *spinning = pending_searches;
    pending = NULL;
    return p;
}
void maker_want_spare_locked(void) {}
P *maker_pending_locked(void) { return pending; }
bool maker_has_pending(void) { return pending != NULL; }

/* ---- Ms and Gs ---- */

static M ms[MC_THREADS];
static P all_ps[PS];
static G gs[GS];
static int errnos[MC_THREADS];
static void (*bodies[GS])(void);
static int ended[GS];
static int begun; /* a bit each */

static void model_resumes(int i) { tls_m = &ms[i]; }

static void gone(M *m, void *gp) {
    ended[(G *)gp - gs]++;
    store_rlx(&((G *)gp)->status, G_DEAD);
}
static __attribute__((noinline)) void goroutine_begin(G *gp) {
    mc_stack_begins(__builtin_frame_address(0));
    finish_switch(getm());
    leave(getm());
    begun |= 1 << (gp - gs);
    bodies[gp - gs]();
    leave_for_good(enter(), gone, gp);
}
static void goroutine_body(void *gp) {
    mc_forget_registers();
    goroutine_begin(gp);
}
static void thread(void) { schedule_loop(getm()); }

static void add_g(int i, void (*body)(void)) {
    char *hi = mc_stack(&gs[i].sp);
    gs[i] = (G){.id = (uint64_t)i + 1, .status = G_RUNNABLE, .stack = (Stack *)hi};
    gs[i].sp = arch_first_frame(hi, goroutine_body, &gs[i]);
    bodies[i] = body;
    ended[i] = 0;
}

/* Everything is as before the first step; nobody has a P, and no thread exists. */
static void whole_reset(void) {
    memset(&sched, 0, offsetof(Sched, ps));
    memset(ms, 0, sizeof ms);
    memset(all_ps, 0, sizeof all_ps);
    memset(&turn, 0, sizeof turn);
    pending = NULL;
    begun = 0;
    sched.procs = PS;
    sched.running = 1;
    sched.polled_at = 1;
    for (int i = 0; i < PS; i++) {
        sched.ps[i] = &all_ps[i];
        all_ps[i].id = (uint32_t)i;
        all_ps[i].timers.first = GORT_FOREVER;
        all_ps[i].status = P_RUNNING;
    }
    for (int i = 0; i < MC_THREADS; i++)
        ms[i] = (M){.locks = 1,
                    .id = (uint32_t)i,
                    .tid = i,
                    .errno_at = &errnos[i],
                    .alive = 1,
                    .plain = i >= MS};
    mon.m = &ms[MC_THREADS - 1];
}

/* M i holds P i from the beginning. */
static void holds_p(int i) {
    ms[i].p = &all_ps[i];
    all_ps[i].m = &ms[i];
}

/* The thread of M i, which may wait for ever. */
static void add_m_that(int i, void (*does)(void)) {
    mc_watch(&ms[i].locks);
    mc_watch(&ms[i].p);
    mc_spawn_on(does, &ms[i].g0sp);
    mc_threads[i].daemon = true;
}
static void add_m(int i) { add_m_that(i, thread); }

/* The maker's next thread: comes into being when a P waits for one. */
static bool has_pending(void *arg) { return pending != NULL; }
static void made(void) {
    M *m = getm();
    bool spinning = false;
    mc_wait(has_pending, NULL);
    lock(&sched.lock, RANK_SCHED);
    P *p = maker_take_pending_locked(&spinning);
    unlock(&sched.lock);
    if (p) {
        m->spinning = spinning;
        m_acquire_p(m, p);
    }
    schedule_loop(m);
}
static void add_made(int i) { add_m_that(i, made); }

static uint64_t whole_hash(uint64_t h) {
    for (int i = 0; i < MS; i++) {
        M *m = &ms[i];
        h = mix_bytes(h, m, offsetof(M, note) + sizeof m->note);
        h = mix(mix(mix(mix(h, WORD(m->nextp)), WORD(m->nextg)), WORD(m->oldp)), m->syscalltick);
        h = mix_bytes(mix(mix(mix(h, WORD(m->link)), m->in_poll), m->nheld), m->held,
                      m->nheld * sizeof m->held[0]);
    }
    for (int i = 0; i < GS; i++) {
        G *gp = &gs[i];
        h = mix(mix(mix(mix(h, WORD(gp->sp)), WORD(gp->schedlink)), gp->status), WORD(gp->m));
        h = mix(mix(mix(h, WORD(gp->home)), gp->flags), (uint64_t)ended[i]);
    }
    for (int i = 0; i < PS; i++) {
        P *p = &all_ps[i];
        /* not how often it went round */
        for (uint32_t k = p->head; k != p->tail; k++) h = mix(h, WORD(p->ring[k % RING]));
        h = mix(mix(mix(mix(h, p->tail - p->head), WORD(p->runnext)), p->turn), p->look);
        h = mix(mix(mix(mix(h, p->ring_next), WORD(p->m)), p->status), WORD(p->link));
        h = MIX(h, p->timers);
    }
    h = mix(mix(mix(mix(h, sched.lock.word), WORD(sched.idle_ps)), WORD(sched.idle_ms)),
            sched.idle_m_count);
    h = MIX(mix(mix(mix(mix(h, sched.npidle), sched.spinning), sched.in_syscall), sched.taken),
            sched.global);
    h = mix(mix(h, (uint64_t)sched.polled_at), (uint64_t)sched.poll_until);
    return mix(mix(mix(MIX(h, turn), WORD(pending)), pending_searches), (uint64_t)begun);
}

#endif
