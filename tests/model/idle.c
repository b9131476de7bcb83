/*
 * Somebody is awake for work, and the monitor beside a busy P; and a deadlock is reported
 * (src/sched/wake.c, src/sched/find.c, src/sched/fastpath.h, src/sched/slotwatch.c,
 * src/sched/sysmon.c's deep sleep, src/sched/deadlock.c). The scheduler itself (whole.h): two Ms,
 * one or two Ps, a monitor, a plain thread.
 *
 * What has to hold when nothing moves any more:
 *   - no goroutine is in a queue while a P is idle: whoever submitted it woke somebody, or who gave
 *     up saw it;
 *   - the monitor does not sleep without a limit while a P is in use;
 *   - where all goroutines are blocked for good, that was reported.
 *
 * Goroutines that run compute for ever, so that nobody but an idle P's thread comes for the others.
 * A thief's random numbers are 0 and 1.
 */
#ifndef PS_IN_USE
#define PS_IN_USE 2
#endif
enum { MS = PS_IN_USE == 1 ? 3 : 2, PS = PS_IN_USE, GS = 3, MONITOR = MS, PLAIN };
#define MODEL_ALARM 1
#include "whole.h"

/* ---- the rest of the house: the alarm, and what deadlock.c asks and does ---- */

static int64_t alarm_at;
static uint32_t reported, alarm_word; /* alarm_word: that the alarm is a place which others write */
static bool never(void *arg) { return false; }
static uint32_t signalled; /* the monitor, by a signal that waits for it */
static bool alarm_is_set(void *arg) { return alarm_at != GORT_FOREVER || signalled; }
int os_alarm_set(int fd, int64_t when) {
    xchg_seq(&alarm_word, 1);
    alarm_at = when;
    return 0;
}
int os_alarm_wait(int fd, int signo, int64_t most) {
    mc_looks_at(&alarm_word);
    mc_looks_at(&signalled);
    mc_wait(alarm_is_set, NULL);
    signalled = 0;
    alarm_at = GORT_FOREVER;
    return true;
}
bool maker_has_pending_locked(void) { return pending != NULL; }
int os_thread_count(void) { return 1; }
void netpoll(int64_t deadline, GList *list);
void netpoll_break(void) { wrong("the network"); }
int print_fd(int fd, const char *format, ...) { return 0; }
bool first_to_speak(void) { return true; }
#define ftrylockfile(file) 1
int gort_count(void) { return 1; }
bool uring_on(void) { return false; }
int os_io_workers(void) { return 0; }
int os_tgkill(int tid, int signo) {
    xchg_seq(&signalled, 1);
    return 0;
}
int os_alarm_open(void) { return -ENOSYS; }
void os_alarm_close(int fd) {}
bool kpoll_check(void) { return true; }
bool kpoll_ours(int fd) { return true; }
int kpoll_watch(int fd) { return 0; }
void warn_once(int which, const char *format, ...) {}
static bool clock_armed(void) { return false; }
static NORETURN void reports(void) {
    store_rlx(&reported, 1);
    for (;;) mc_wait(never, NULL);
}
bool body_leads; /* no: the program's threads are threads */
#define _exit(status) reports()
#include <sched/deadlock.c>
#undef _exit
/* the report's words are not looked at */
int body_tid(G *gp) { return 0; }
Module *module_of(uintptr_t pc) { return NULL; }
Named symbol_of(uintptr_t pc) { return (Named){0}; }
void each_g(void (*fn)(G *gp, void *arg), void *arg) {}
void g_name(G *gp, char *buf) {}
uintptr_t g_entry(G *gp) { return 0; }

/* ---- what goroutines and the plain thread do ---- */

static void computes(void) { mc_wait(never, NULL); }
static void ends(void) {}
static void makes_ready(void (*how)(M *, G *)) {
    M *m = enter();
    how(m, &gs[1]);
    leave(m);
    mc_wait(never, NULL);
}
static void to_slot(void) { makes_ready(ready); }
static void to_slot_straight(void) { makes_ready(ready_straight); }
static void to_ring(void) { makes_ready(ready_tail); }
static void to_global(void) {
    M *m = enter();
    store_rlx(&gs[1].status, G_RUNNABLE);
    global_put(&gs[1]);
    wake_after_submit(m);
    leave(m);
}

static void hands_off(void) { /* its goroutine waits, and the thread is nobody else's */
    M *m = enter();
    handoff_p(m, &all_ps[1]);
    leave(m);
}

static void counts_down(void) {
    M *m = enter();
    sysmon_uncount(&sched.poll_waiters, 1);
    leave(m);
}

/* A signal handler that cannot wake whom it wants to. */
static uint32_t paid;
static void pays(M *m) { store_rlx(&paid, 1); }
static void asks(void) { sysmon_ask(pays); }

/* An M in the poller, which makes gs[1] ready when it comes out. */
static uint32_t in_poller;
static void comes_from_poller(void) {
    M *m = getm();
    store_rlx(&sched.polled_at, 1);
    wait_in_poller(m, &m->nextg);
    schedule_loop(m);
}
void netpoll(int64_t deadline, GList *list) {
    if (deadline == 0) return;
    if (!in_poller) mc_wait(never, NULL); /* nothing comes any more */
    in_poller = 0;
    glist_push(list, &gs[1]);
}

/* ---- the monitor ---- */

static bool all_idle(void *arg) { return sched.npidle == sched.procs && !sched.taken; }
static void sleeps_once(void) { sleep_deeply(1); }
static void sleeps(void) { /* as sysmon_main does */
    for (;;) {
        mc_looks_at(&sched.npidle);
        mc_wait(all_idle, NULL);
        if (load_rlx(&mon.work) != NULL) do_work();
        sleep_deeply(1);
        mon.patience = 0; /* how long it sleeps is all the same here */
    }
}
static void ends_watch(void) { end_watch(getm(), &all_ps[0]); }

static const struct Scene {
    const char *name;
    /* so many Ps have a thread; the others are idle, and their Ms in the pool */
    int in_use;
    void (*first)(void);  /* runs on the first P */
    void (*queued)(void); /* is in its ring, and its M looks for it */
    void (*plain)(void);  /* a thread without a P */
    void (*monitor)(void);
    /* somebody is in the slot; it is watched; the first M counts as a searcher */
    bool kicks, watched, searches;
    bool dies;        /* a deadlock */
    uint32_t lasting; /* waiters in the poller, which keep it from one */
    bool large;       /* with the argument "all" only, or as the SCENE */
} scenes[] = {
#if PS_IN_USE == 2
    {"into the slot", 2, to_slot, NULL, NULL, NULL, 0, 0, 0, 0, 1, 0},
    {"into the slot, straight", 2, to_slot_straight, NULL, NULL, NULL, 0, 0, 0, 0, 1, 0},
    {"into the slot, and somebody is pushed out", 2, to_slot, NULL, NULL, NULL, 1, 0, 0, 0, 1, 0},
    {"into the ring", 2, to_ring, NULL, NULL, NULL, 0, 0, 0, 0, 1, 0},
    {"from a thread", 2, computes, NULL, to_global, NULL, 0, 0, 0, 0, 1, 0},
    {"from a thread, and the last searcher finds another", 2, NULL, computes, to_global, NULL, 0, 0,
     1, 0, 1, MODEL_WEAK},
    {"into a watched slot, and the watch ends", 2, to_slot_straight, NULL, NULL, ends_watch, 0, 1,
     0, 0, 1, MODEL_WEAK},
    {"into the ring by what the last searcher found, and a P loses its thread", 1, NULL, to_ring,
     hands_off, NULL, 0, 0, 1, 0, 0, 0},
#else
    {"a P is taken, and the monitor goes to sleep", 0, NULL, NULL, to_global, sleeps_once, 0, 0, 0,
     0, 1, 0},
    {"a deadlock", 1, ends, NULL, NULL, sleeps, 0, 0, 0, 1, 0, 0},
    /* Too large to be gone through: for its mutant only (mutants_idle.sh). That it holds is not
     * shown; the next one is its last step. */
    {"a deadlock, and one comes out of the poller", 1, ends, NULL, NULL, sleeps, 0, 0, 0, 1, 1, 1},
    {"a deadlock, and what kept it off is counted down", 0, NULL, NULL, counts_down, sleeps, 0, 0,
     0, 1, 1, 0},
    {"a handler leaves something to the monitor, which goes to sleep", 0, NULL, NULL, asks, sleeps,
     0, 0, 0, 0, 1, 0},
#endif
};
static const struct Scene *scene;

static bool first_begins(void) { return begun & 1; }
static bool out_of_poller(void) { return in_poller == 0; }
static bool first_is_taken(void) { return all_ps[0].head == all_ps[0].tail; }
static void monitor(void) { scene->monitor(); }

static void model_reset(void) {
    upstairs.clock_armed = clock_armed;
    whole_reset();
    alarm_at = GORT_FOREVER;
    alarm_word = 0;
    sysmon_sleeps = reported = signalled = paid = 0;
    mon.work = NULL;
    in_poller = scene->dies && scene->first && scene->lasting;
    mon.m = &ms[MONITOR];
    mon.alarm = 1;
    mon.alarm_lock.word = mon.note.word = 0;
    mon.patience = 0;
    sched.poll_waiters = scene->lasting;
    sched.polled_at = 0; /* nobody here goes to sleep in the poller */
    add_g(0, scene->queued ? scene->queued : scene->first);
    add_g(1, scene->dies ? ends : computes);
    add_g(2, computes);
    gs[1].status = G_WAITING;
    for (int i = 0; i < scene->in_use; i++) holds_p(i);
    for (int i = PS; i-- > scene->in_use;)
        if (scene->plain != hands_off) idle_p_put_locked(&all_ps[i]);
    if (scene->first) ms[0].nextg = &gs[0];
    if (scene->queued) runq_push(&all_ps[0], &gs[0]);
    if (scene->kicks) all_ps[0].runnext = &gs[2];
    if (scene->watched) all_ps[0].watch = WATCHED;
    if (scene->searches) ms[0].spinning = true, sched.spinning = 1;
    for (int i = 0; i < MS; i++) {
        if (in_poller && i == MS - 1) add_m_that(i, comes_from_poller);
        else add_m(i);
    }
    ms[PLAIN].locks = 0;
    mc_spawn(scene->monitor ? monitor : ends);
    mc_threads[MONITOR].daemon = true;
    if (scene->plain) mc_spawn(scene->plain);
    for (int i = scene->in_use; i < MS - (int)in_poller; i++) mc_advance(i, NULL); /* in the pool */
    if (in_poller) mc_advance(MS - 1, out_of_poller);
    if (!scene->monitor) mc_advance(MONITOR, NULL);
    if (scene->first) mc_advance(0, first_begins);
    if (scene->searches) mc_advance(0, first_is_taken);
}

static void model_end(void) {
    MUST(reported == scene->dies);
    if (scene->dies) return;
    for (int i = 0; i < PS; i++)
        MUST(sched.npidle == 0 || (all_ps[i].runnext == NULL && all_ps[i].head == all_ps[i].tail));
    MUST(sched.npidle == 0 || sched.global.count == 0);
    if (scene->plain == asks) MUST(paid);
    else MUST(scene->kicks || (begun & 2));
    bool asleep = mc_threads[MONITOR].until == alarm_is_set;
    MUST(sched.npidle == PS || !asleep || alarm_at != GORT_FOREVER);
}

static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(mix(whole_hash(h), (uint64_t)alarm_at), reported), alarm_word), in_poller);
    h = mix(mix(mix(h, signalled), paid), WORD(mon.work));
    h = mix(mix(mix(mix(h, sysmon_sleeps), mon.alarm_lock.word), (uint64_t)mon.patience),
            sched.poll_waiters);
    for (int i = 0; i < PS; i++) h = mix(h, all_ps[i].watch);
    return h;
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
