/*
 * The monitor: a thread without a P.
 *
 * It looks at the Ps every 20 us to 10 ms, depending on how much happens, and sleeps deeply when
 * all are idle (a thread that takes an idle P wakes it). Per look:
 *
 *   - a P whose goroutine has used up its slice while others wait: preempt it (preempt.c);
 *   - a P whose thread is in an announced call for more than a look, or asleep in the kernel in an
 *     unannounced one, while others wait: take it (retake.c) and hand it off;
 *   - a thread asleep in an optimistic call of the hook's (hook/optimistic.c): end it by signal;
 *   - a thread that lost its P so and computes: stop it by signal (in a stopped world, too);
 *   - the slots of Ps that switch quickly (slotwatch.c);
 *   - a due timer on a busy P, or a global queue that it has passed by for a slice: make it pass by
 *     g0; the network, if no thread has looked for 10 ms;
 *   - a P that waits for a thread and none comes (wake.c);
 *   - wake-ups that a signal handler could not do itself (sysmon_ask);
 *   - once a second: idle stacks and spans back to the system, the cgroup's quota;
 *   - a collection, where the program has a collector and none happened for two minutes;
 *   - schedtrace, stall and leak reports, the deadlock check.
 *
 * It never mallocs, and takes locks only for a few instructions.
 *
 * Sleeping deeply. Nothing of its work is due when the first P has only just begun to work. So a
 * thread that comes out of the poller with something to run, as in an idle server for each message,
 * does not wake it: that would cost 5 to 10 us before the goroutine runs. It sets an alarm
 * (sysmon_sleeps 1 -> 2), and the monitor comes by on its own. The monitor sets the alarm to its
 * own limit before it says that it sleeps, or else looks whether that is still so afterwards: it
 * never overwrites another thread's. Of two other threads at once, the later time may win, by a
 * tick. In a simulation, and where there is no alarm to be had, it sleeps on a note and is woken.
 * Should the alarm's number be closed by the program while the monitor sleeps on it, setting it
 * fails, and the preemption signal, which the monitor takes only there, wakes it.
 */
#include "sched/sysmon.h"
#include "sched/threadstate.h"
#include "base/upstairs.h"
#include "sched/deadlock.h"
#include "base/env.h"
#include "sched/globalq.h"
#include "sched/m.h"
#include "sched/threadmaker.h"
#include "sched/netpoll.h"
#include "sched/preempt.h"
#include "sched/retake.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "mem/compact_mem.h"
#include "sched/preferred.h"
#include "mem/span.h"
#include "mem/stack.h"
#include "sched/wake.h"
#include "sched/slotwatch.h"
#include "sched/stopworld.h"

#define TICK_MIN (20 * GORT_US)
#define TICK_MAX (10 * GORT_MS)
#define TICK_WAIT (2 * GORT_MS) /* while a goroutine waits for a P */
#define TICK_SOON GORT_MS       /* from the first P that begins to work to our next look */
/* while one runs: a slice that begins now must not be noticed much later */
#define TICK_BUSY (3 * GORT_MS)

uint32_t sysmon_sleeps;

static struct {
    pthread_t thread;
    bool stop;
    Note note;
    Lock alarm_lock; /* a thread may want the monitor while the runtime ends */
    int alarm;       /* alarm_lock to write or set: a timerfd; -1: none */
    M *m;
    void (*work)(M *m); /* atomic: what a signal handler could not do (sysmon_ask) */
    int64_t scavenged, quota_at;
    uint64_t idle_memory;
    int64_t patience;
    int64_t next_slice_end; /* of a P that others wait for */
    uint32_t naps;          /* sleeps in a row that nobody ended */
} mon;

/* Any thread. -ENODEV: there is no alarm. */
static int alarm_set(int64_t when) {
    lock(&mon.alarm_lock, RANK_LEAF);
    int r = mon.alarm >= 0 ? os_alarm_set(mon.alarm, when) : -ENODEV;
    unlock(&mon.alarm_lock);
    return r;
}

/* A thread that is not the monitor. False: there is no alarm. One that cannot be set was closed
 * behind our back, or the kernel refuses the call: the monitor may sleep on it. */
static bool set_alarm(int64_t when) {
    int r = alarm_set(when);
    if (unlikely(r < 0 && r != -ENODEV)) os_tgkill(mon.m->tid, settings.preempt_signal);
    return r != -ENODEV;
}

static void sysmon_wake(void) {
    if (xchg_seq(&sysmon_sleeps, 0) != 0 && !set_alarm(1)) note_wake(&mon.note);
}

void sysmon_wake_soon(void) {
    uint32_t sleeps = 1;
    if (!cas_seq(&sysmon_sleeps, &sleeps, 2)) return;
    if (!set_alarm(time_after(os_now(), TICK_SOON))) sysmon_wake();
}

void sysmon_uncount(uint32_t *count, uint32_t n) {
    sub_seq(count, n);
    /* pairs with sleep_deeply: it sees the new count, or we see that it sleeps */
    fence_after_rmw();
    if (unlikely(load_rlx(&sysmon_sleeps) == 1)) sysmon_wake_soon();
}

/* Not by the alarm: this thread may have been interrupted with its lock. Pairs with sleep_deeply:
 * the monitor sees the work, or we see that it sleeps, or will; then the signal waits for it. */
void sysmon_ask(void (*work)(M *m)) {
    store_seq(&mon.work, work);
    if (load_seq(&sysmon_sleeps) == 0) return;
    os_tgkill(mon.m->tid, settings.preempt_signal);
    note_wake(&mon.note);
}

static void do_work(void) {
    void (*work)(M * m) = xchg_seq(&mon.work, NULL);
    if (work) work(mon.m);
}

/* For p, or for the thread that has it (NULL: it is on its way to one). */
static bool others_wait(P *p, M *m, int64_t now) {
    if (global_count() != 0 || !runq_empty(p) || (m && soft_waits(m))) return true;
    return load_acq(&p->timers.first) <= now;
}

static void hand_on(P *p) {
    add_rlx(&sched.other.handoffs, 1);
    handoff_p(mon.m, p);
}

/* An announced call: after one look if a goroutine waits for the P, after 10 ms anyway unless all
 * is quiet. A thread that makes short calls all the time is in another one at each look: `over`,
 * its slice has ended, and a goroutine waits for the P. */
static bool look_at_call(P *p, M *m, int64_t now, bool over) {
    uint32_t tick = load_rlx(&m->syscalltick);
    if (p->seen_syscalltick != tick && !over) {
        p->seen_syscalltick = tick;
        p->seen_syscall_when = now;
        return false;
    }
    bool needed = over || others_wait(p, m, now) ||
                  (load_rlx(&sched.spinning) + load_rlx(&sched.npidle) == 0 &&
                   now - p->seen_syscall_when > 10 * GORT_MS);
    if (!needed) return false;
    P *taken = retake_announced(m, tick);
    if (taken == NULL) return false;
    hand_on(taken);
    return true;
}

/* We have to look again by then. */
static void aim_at(int64_t when) {
    if (when < mon.next_slice_end) mon.next_slice_end = when;
}

/* The global queue is not empty, and p has taken nothing from there for a slice: where new slices
 * begin all the time (a timer, a ring that is never empty), 60 rounds may last 60 slices. */
static bool passes_global_by(P *p, int64_t now) {
    uint64_t gets = load_rlx(&p->n.global_gets);
    if (gets != p->seen_gets || global_count() == 0) {
        p->seen_gets = gets;
        p->seen_gets_when = now;
        return false;
    }
    aim_at(p->seen_gets_when + SLICE);
    if (now - p->seen_gets_when < SLICE) return false;
    p->seen_gets_when = now;
    return true;
}

/* Those that p comes to only by g0: it passes by at its next switch. `over`: its slice is. */
static void look_for_others(P *p, int64_t now, bool over) {
    if (passes_global_by(p, now) || over) {
        bump(&p->looks, 1);
        store_rlx(&p->look, LOOK_GLOBAL);
    } else if (load_acq(&p->timers.first) <= now && load_rlx(&p->look) == 0) {
        store_rlx(&p->look, LOOK_HERE);
    }
}

/* Since when p is in this slice, as far as we have seen. */
static int64_t slice_began(P *p, M *m, int64_t now) {
    uint32_t tick = load_rlx(&p->schedtick);
    if (p->seen_tick != tick) {
        p->seen_tick = tick;
        p->seen_when = now;
        if (m) m->seen_cpu = -1;
    }
    return p->seen_when;
}

/* The hook makes a call as it is where it expects not to wait. One that does wait is not found by a
 * close of its number, so it must not last: its thread, whose clock has stood still since the last
 * look, is told to wait as a goroutine (hook/optimistic.c). A signal that comes just before the
 * call is lost on it; then the clock has moved, and the next look but one tells it again. So
 * `hot_sp` needs no order: it is looked at for as long as the thread sleeps. */
static void look_at_hot(M *m) {
    if (likely(load_rlx(&m->hot_sp) == 0)) return;
    int64_t cpu = os_thread_cpu(m->clock);
    if (cpu == m->hot_cpu) { /* or there is no clock */
        bump(&sched.roused, 1);
        os_tgkill(m->tid, settings.preempt_signal);
    }
    m->hot_cpu = cpu;
}

/* True: something was done. */
static bool look_at(P *p, int64_t now) {
    M *m = load_rlx(&p->m); /* NULL: p is on its way to a thread, perhaps at each look */
    if (load_rlx(&p->status) != P_RUNNING) return false;
    G *gp = m ? load_rlx(&m->curg) : NULL;
    bool announced = gp && load_rlx(&gp->status) == G_SYSCALL;
    /* nothing depends on how fast it runs */
    if (sim_on) return announced && look_at_call(p, m, now, false);
    if (m) look_at_hot(m);
    int64_t began = slice_began(p, m, now);
    bool waited_for = others_wait(p, m, now), over = waited_for && now - began >= SLICE;
    if (!waited_for) p->waited_when = 0;
    else if (p->waited_when < began) p->waited_when = now;
    look_for_others(p, now, over);
    if (announced && look_at_call(p, m, now, over)) return true;
    if (!waited_for) return false;
    aim_at(over ? now : time_after(began, SLICE)); /* over: look again soon, it may be asleep */
    if (m == NULL) return false;
    if (over) {
        if (upstairs.overrun) upstairs.overrun(p, m, now);
        preempt_m(m);
    }
    if (announced || began == now) return false;
    P *taken = retake_if_asleep(m, over);
    if (taken == NULL) return false;
    hand_on(taken);
    return true;
}

/* Threads that lost their P in the kernel and now compute. */
static void look_at_taken(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        if (!load_acq(&m->alive) || m->plain || !(load_rlx(&m->attn) & ATTN_TAKEN)) continue;
        look_at_hot(m);
        int64_t cpu = os_thread_cpu(m->clock);
        G *gp = load_rlx(&m->curg);
        if (cpu == m->seen_cpu || (gp && load_rlx(&gp->status) == G_SYSCALL)) continue;
        thread_seen(m, cpu);
        preempt_m(m);
    }
}

static void hammer(void) {
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) {
        M *m = load_rlx(&sched.ps[i]->m);
        if (m == NULL || load_rlx(&sched.ps[i]->status) != P_RUNNING) continue;
        P *p = retake_hammer(m);
        if (p) hand_on(p);
        else if (random_next(&mon.m->rng) % 64 == 0) preempt_m(m);
    }
}

static void poll_network(int64_t now) {
    if (sim_on) return; /* at each switch (sim.c) */
    int64_t last = load_rlx(&sched.polled_at);
    if (last == 0 || now - last < 10 * GORT_MS || load_rlx(&sched.poll_waiters) == 0) return;
    if (!__atomic_compare_exchange_n(&sched.polled_at, &last, now, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return;
    GList list = {0};
    netpoll(0, &list);
    uint32_t n = list.count;
    if (n == 0) return;
    add_rlx(&sched.other.netpoll_wakeups, n);
    ready_list(mon.m, &list);
    sub_seq(&sched.poll_waiters, n);
}

static void apply_quota(void *arg) { procs_follow((int)(intptr_t)arg); }

/* The cgroup's quota may change while the program runs; unless it has chosen for itself, the
 * number of Ps follows. A goroutine does it, since it takes a stop of the world. */
static void follow_quota(int64_t now) {
    if (now - mon.quota_at < 10 * GORT_SEC || settings.procs_from_env ||
        load_rlx(&sched.procs_fixed))
        return;
    mon.quota_at = now;
    int n = env_default_procs();
    if (n > 0 && n != (int)load_rlx(&sched.procs))
        go_start(mon.m, NULL, apply_quota, (void *)(intptr_t)n, NULL, 0,
                 (uintptr_t)apply_quota + 1);
}

/* One that the poller cannot watch is none: nobody could tell whether it is still ours. */
static void open_alarm(void) {
    int fd = sim_on ? -1 : os_alarm_open();
    if (fd >= 0 && kpoll_watch(fd) < 0) {
        os_alarm_close(fd);
        fd = -1;
    }
    lock(&mon.alarm_lock, RANK_LEAF);
    mon.alarm = fd;
    unlock(&mon.alarm_lock);
}

static void give_up_alarm(void) {
    lock(&mon.alarm_lock, RANK_LEAF);
    int fd = mon.alarm;
    mon.alarm = -1;
    unlock(&mon.alarm_lock);
    if (fd >= 0 && kpoll_ours(fd)) os_alarm_close(fd);
}

/* The program may have closed our descriptors, and others may have their numbers. */
static void look_after_descriptors(void) {
    if (sim_on) return;
    kpoll_check();
    if (mon.alarm < 0 || kpoll_ours(mon.alarm)) return;
    give_up_alarm();
    open_alarm();
}

/* The monitor, before it sleeps. Where the alarm cannot be set the note will do. */
static void aim_alarm(int64_t until) {
    if (unlikely(alarm_set(until) < 0)) give_up_alarm();
}

static void housekeeping(int64_t now) {
    follow_quota(now);
    if (now - mon.scavenged >= GORT_SEC) {
        mon.scavenged = now;
        look_after_descriptors();
        mon.idle_memory = stack_scavenge() + slots_scavenge() + span_scavenge();
    }
    for (const MonitorClient *const *c = upstairs.clients; *c; c++) (*c)->look(mon.m, now);
}

/* The number may get another owner just before we sleep on it, with the alarm that was to wake us.
 * So the first sleep ends after a second, and we look whose it is; each further one doubles. */
static void sleep_on(int64_t until) {
    if (mon.alarm < 0) {
        note_sleep_until(&mon.note, until);
        return;
    }
    int r = os_alarm_wait(mon.alarm, settings.preempt_signal, GORT_SEC << mon.naps);
    if (r < 0) give_up_alarm(); /* a note will do */
    if (r != 0) mon.naps = 0;
    else if (mon.naps < 6) mon.naps++;
}

/* Behind the flag. A thread that takes an idle P looks at the flag in the same hold of the lock:
 * before ours, and we see that a P is in use, or after it, and that thread sees the flag. So the
 * pair costs that thread no fence. */
static bool nothing_to_look_at(void) {
    lock(&sched.lock, RANK_SCHED);
    bool idle = load_rlx(&sched.npidle) == load_rlx(&sched.procs);
    unlock(&sched.lock);
    return idle && !load_acq(&mon.stop) && load_rlx(&sched.taken) == 0 &&
           load_rlx(&sched.soft_waiting) == 0 && load_rlx(&mon.work) == NULL;
}

/* All Ps are idle: sleep until one is taken, or our work is due. True: a thread wants us now. */
static bool sleep_deeply(int64_t now) {
    int64_t until = GORT_FOREVER;
    if (mon.idle_memory > 0) until = time_after(mon.scavenged, GORT_SEC);
    for (const MonitorClient *const *c = upstairs.clients; *c; c++) {
        int64_t due = (*c)->due(now);
        if (due < until) until = due;
    }
    look_after_descriptors();
    note_clear(&mon.note);
    aim_alarm(until); /* before we say so */
    store_rlx(&sysmon_sleeps, 1);
    fence_full(); /* pairs with sysmon_uncount, sysmon_ask and sysmon_stop */
    if (nothing_to_look_at()) {
        if (dead_check()) { /* something that is just ending: look again, more and more seldom */
            mon.patience = mon.patience ? mon.patience * 2 : 2 * GORT_MS;
            if (mon.patience > GORT_SEC) mon.patience = GORT_SEC;
            int64_t then = time_after(now, mon.patience);
            if (then < until) aim_alarm(until = then);
        } else {
            mon.patience = 0;
        }
        if (load_rlx(&sysmon_sleeps) == 1) sleep_on(until);
    }
    return xchg_seq(&sysmon_sleeps, 0) == 0;
}

static bool look_at_all(int64_t now) {
    bool did = false;
    if (settings.retake == 2) hammer();
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) did |= look_at(sched.ps[i], now);
    return did;
}

static int64_t look_around(int64_t now) {
    bool did = false;
    mon.next_slice_end = GORT_FOREVER;
    retaker_lock();
    if (!load_rlx(&collect_stopped)) { /* those sleep, and shall */
        if (!load_rlx(&sched.stop_waiting)) did = look_at_all(now);
        if (load_rlx(&sched.taken)) look_at_taken(); /* also in a stopped world: stopworld.c */
    }
    retaker_unlock();
    if (load_rlx(&sched.npidle) != 0 && timers_first() <= now) wakep(mon.m); /* of a busy P */
    if (maker_has_pending()) give_late_p(mon.m, now);
    return did ? 0 : mon.next_slice_end;
}

static void *sysmon_main(void *arg) {
    tls_m = mon.m;
    mon.m->tid = os_gettid();
    mon.m->errno_at = __errno_location();
    int64_t delay = TICK_MIN;
    int quiet = 0;
    while (!load_acq(&mon.stop)) {
        int64_t now = os_now();
        if (!sim_on) store_rlx(&sched.coarse, now); /* mutexes decide by it */
        bump(&sched.looks, 1);
        housekeeping(now);
        poll_network(now);
        if (unlikely(load_rlx(&mon.work) != NULL)) do_work();
        soft_look(mon.m, now);
        int64_t slice_end = look_around(now);
        int64_t watch_due = watch_slots(mon.m, now);
        if (slice_end == 0) {
            quiet = 0;
            delay = TICK_MIN;
        } else if (++quiet > 50) {
            delay = delay * 2 > TICK_MAX ? TICK_MAX : delay * 2;
        }
        int64_t nap = delay;
        if (slice_end != 0 && slice_end != GORT_FOREVER) { /* aim at the end of the slice */
            nap = slice_end - now;
            if (nap > TICK_WAIT) nap = TICK_WAIT;
            if (nap < 500 * GORT_US) nap = 500 * GORT_US;
        } else {
            int64_t timer = time_left(timers_first(), now);
            if (timer > 0 && timer < nap && nap > GORT_MS) nap = timer < GORT_MS ? GORT_MS : timer;
        }
        if (nap > TICK_BUSY && load_rlx(&sched.npidle) < load_rlx(&sched.procs)) nap = TICK_BUSY;
        if (nap > watch_due) nap = watch_due;
        if (settings.retake == 2) nap = TICK_MIN;
        if (watch_due == GORT_FOREVER && load_rlx(&sched.npidle) == load_rlx(&sched.procs) &&
            load_rlx(&sched.taken) == 0 && load_rlx(&sched.soft_waiting) == 0) {
            if (++quiet > 60) {
                quiet = sleep_deeply(now) ? 0 : 60; /* by the alarm: nothing was urgent */
                delay = TICK_MIN;
                continue;
            }
        }
        os_nap(nap);
    }
    tls_m = NULL;
    return NULL;
}

static void close_down(void) {
    give_up_alarm();
    m_record_free(mon.m);
}

int sysmon_start(void) {
    mon.m = m_record();
    if (mon.m == NULL) return -ENOMEM;
    mon.m->plain = true;
    mon.stop = false;
    int64_t now = mon.scavenged = mon.quota_at = os_now();
    for (const MonitorClient *const *c = upstairs.clients; *c; c++)
        if ((*c)->begin) (*c)->begin(now);
    mon.idle_memory = 1;
    open_alarm();
    int r = own_thread(&mon.thread, 0, sysmon_main, NULL);
    if (r != 0) close_down();
    return r;
}

void sysmon_stop(void) {
    store_rel(&mon.stop, true);
    sysmon_wake();
    note_wake(&mon.note);
    pthread_join(mon.thread, NULL);
    add_rlx(&sched.threads, -1);
    close_down();
}
