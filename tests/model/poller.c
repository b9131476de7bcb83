/*
 * Somebody is awake for the earliest timer: timer_add() and wake_for_timer() (src/sched/timer.c,
 * src/sched/wake.c) against the threads that find nothing to do and go to sleep, one in the poller
 * until the next timer, the others in the pool (src/sched/find.c). The scheduler itself (whole.h),
 * with one or two Ps, and plain threads or a goroutine that arm timers.
 *
 * When nothing moves any more, a thread waits in the poller, and not for longer than the earliest
 * timer of all heaps. That is the Dekker pair of poll_until and the first timer, its neighbours (a
 * poller that is just coming or going, a thread that finds the place taken), and the submit and
 * give-up pair, where the timer is what was submitted.
 *
 * And for a descriptor: a goroutine that is locked to its thread waits for one, so its P is left
 * without a thread while the last searcher gives up (handoff_p's look_out). When nothing moves any
 * more, a thread waits in the poller.
 *
 * The clock stands at 1, the timers are due at 3 to 10: none fires. The kernel's side is a flag:
 * netpoll_break() ends the wait that is under way, or the next one.
 */
#ifndef PS_IN_USE
#define PS_IN_USE 1
#endif
enum { MS = PS_IN_USE + 1, PS = PS_IN_USE, GS = 1 };
#include "whole.h"

int os_tgkill(int tid, int signo) { return 0; }

static uint32_t broken_off;
static int polling;
static int64_t polling_until;

static bool is_broken_off(void *arg) { return broken_off != 0; }
void netpoll(int64_t deadline, GList *list) {
    if (deadline == 0) return;
    MUST(polling++ == 0);
    polling_until = deadline;
    mc_looks_at(&broken_off);
    mc_wait(is_broken_off, NULL);
    broken_off = 0;
    polling--;
}
void netpoll_break(void) { xchg_seq(&broken_off, 1); }

/* ---- who arms ---- */

static Timer timers[3];
static void on_time(M *m, void *arg, uint32_t seq) { wrong("a timer fires before its time"); }
static void arms(int i, int64_t when) {
    M *m = enter();
    timers[i] = (Timer){.when = when, .fn = on_time};
    MUST(timer_add(m, &timers[i]) == 0);
    leave(m);
}
static void arms_5(void) { arms(1, 5); }
static void arms_3(void) { arms(2, 3); }

/* As desc_wait() does: counted, and then parked. */
static void waits_locked(void) {
    gort_lock_thread();
    M *m = enter();
    add_seq(&sched.poll_waiters, 1);
    park(m, NULL, WAIT_IO);
    wrong("nobody makes it ready");
}

static const struct Scene {
    const char *name;
    bool before;                          /* one is armed for 10 already */
    void (*first)(void), (*second)(void); /* plain threads */
    void (*goroutine)(void);              /* on the last P */
    bool large;                           /* with the argument "all" only, or as the SCENE */
} scenes[] = {
#if PS_IN_USE == 1
    {"an earlier one comes", true, arms_5, NULL, NULL, false},
    {"the first one comes", false, arms_5, NULL, NULL, false},
    {"two earlier ones come", true, arms_5, arms_3, NULL, true},
#else
    {"a goroutine arms an earlier one", true, NULL, NULL, arms_5, false},
    {"a goroutine arms the first one", false, NULL, NULL, arms_5, false},
    {"a locked goroutine waits for a descriptor", false, NULL, NULL, waits_locked, false},
#endif
};
static const struct Scene *scene;

static TimerNode nodes[PS][4];
static TimerSlot places[PS][4];
static void heap_reset(int i) {
    memset(nodes[i], 0, sizeof nodes[i]);
    for (uint32_t k = 0; k < 4; k++) places[i][k] = (TimerSlot){.place = k + 1};
    all_ps[i].timers =
        (TimerHeap){.first = GORT_FOREVER, .at = nodes[i], .slots = places[i], .capacity = 4};
}

static bool is_begun(void) { return begun != 0; }
/* it has searched in vain */
static bool gives_up(void) {
    return (mc_threads[0].op & 15) == MC_XCHG && mc_threads[0].at == &sched.lock;
}
static void model_reset(void) {
    whole_reset();
    broken_off = 0;
    polling = 0;
    polling_until = 0;
    memset(timers, 0, sizeof timers);
    for (int i = 0; i < PS; i++) {
        heap_reset(i);
        holds_p(i);
    }
    tls_m = &ms[0];
    timers[0] = (Timer){.when = 10, .fn = on_time};
    if (scene->before) insert(&all_ps[0].timers, &timers[0]);
    add_g(0, scene->goroutine);
    if (scene->goroutine) ms[PS - 1].nextg = &gs[0];
    if (scene->goroutine == waits_locked) {
        ms[0].spinning = true;
        sched.spinning = 1;
    }
    for (int i = 0; i < PS; i++) add_m(i);
    add_made(PS);
    for (int i = MS; i < MC_THREADS; i++) ms[i].locks = 0, ms[i].curg = (G *)&ms[i].pseudo;
    if (scene->first) mc_spawn(scene->first);
    if (scene->second) mc_spawn(scene->second);
    if (scene->goroutine == waits_locked) mc_advance(PS - 1, is_begun), mc_advance(0, gives_up);
    /* sleeps already, in the poller or in the pool */
    else if (PS > 1) mc_advance(scene->goroutine ? 0 : 1, NULL);
}

static void model_end(void) {
    MUST(polling == 1 && polling_until <= timers_first());
    MUST(sched.npidle == PS && sched.spinning == 0);
    MUST(scene->goroutine == waits_locked ? sched.poll_waiters == 1 : timers_first() < 10);
}

static uint64_t model_hash(uint64_t h) {
    h = MIX(MIX(MIX(whole_hash(h), nodes), places), timers);
    return mix(mix(mix(mix(h, broken_off), (uint64_t)polling), (uint64_t)polling_until),
               sched.poll_waiters);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < count_of(scenes); i++) {
#ifdef SCENE
        if (SCENE != i) continue;
#else
        if (scenes[i].large && argc < 2) continue;
#endif
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
