/*
 * A runtime begins and ends: gort_main.
 *
 * The calling thread only waits. Start: the settings, the signal handlers, the poller, the Ps, the
 * maker, the monitor; then goroutine 1 is queued and a thread asked for.
 *
 * End, when the program's function has returned on goroutine 1:
 *   1  the world is stopped: no other goroutine runs, and none will
 *   2  running = 0; goroutine 1 leaves, its thread wakes the caller of gort_main
 *   3  the monitor and the maker are joined
 *   4  every thread is told to go (ATTN_EXIT) and woken; those in the pool, in the handler and with
 *      a locked goroutine go at once. One that is inside a blocking call finds out when it comes
 *      back, however late: it is not waited for, and its stack stays until then (send_away)
 *   5  await_sections: those of plain threads that may believe in this runtime are waited for
 *   6  the waits of goroutines are undone: no object that outlives the runtime leads to a stack of
 *      it, and what one of them was granted goes to the next (undo_wait). Then what they had begun
 *      is brought to its end (undo_work)
 *   7  step 5 once more, for sections that took a goroutine off an object before step 6 did
 *   8  what the goroutines left behind, timers, queues, stacks, is taken back
 *
 * Plain threads call in at any moment. A section of theirs either sees `running` and takes effect,
 * or does not: then what needs a runtime returns -ENOTCONN, and a goroutine to be made ready is
 * left to step 8. After step 5 no section is of the first kind, and after step 7 none knows our Gs.
 */
#include "sync/chan.h"
#include "sync/clock.h"
#include "gc/boehm.h"
#include "mem/compact_stack.h"
#include "base/env.h"
#include "base/fatal.h"
#include "base/upstairs.h"
#include "sched/body.h"
#include "sched/goexit.h"
#include "debug/faults.h"
#include "sched/g.h"
#include "sync/free_later.h"
#include "api/hookcalls.h"
#include "sync/houselock.h"
#include "sched/inlibc.h"
#include "sched/schedule.h"
#include "sched/m.h"
#include "sched/threadmaker.h"
#include "sync/mutex.h"
#include "sync/ownthread.h"
#include "sched/netpoll.h"
#include "sched/preempt.h"
#include "sched/retake.h"
#include "sched/runq.h"
#include "sched/sim.h"
#include "base/sysfault.h"
#include "mem/split/split.h"
#include "sched/sysmon.h"
#include "sched/wake.h"
#include "base/print.h"
#include "base/warn.h"
#include "sched/stopworld.h"

#define MAIN_STACK ((size_t)1 << 20)
/* rounds of 50 us and more in which a thread could answer a signal, or leave libc */
#define PATIENCE 2000
#define ASK_AGAIN 32 /* rounds */

static struct {
    int (*fn)(int, char **);
    int argc;
    char **argv;
    int result;
    Note done;
    Stack *first; /* the body of goroutine 1; NULL: it has none */
} run;

/* ---- goroutine 1 ----------------------------------------------------------------------------- */

/* The maker: there was no thread for any goroutine. The end is the usual one, from step 2 on. */
static void main_refused(int error) {
    lock(&sched.lock, RANK_SCHED);
    store_seq(&sched.running, 0);
    unlock(&sched.lock);
    run.result = error;
    note_wake(&run.done); /* its sleeper sees the result */
}

static void main_left(M *m, void *arg) { note_wake(&run.done); }

/* Leaves the section open. */
static void stop_for_good(void) {
    M *m = enter();
    const char *why = unfinished(m);
    if (why) fatal("main returned %s", why);
    world_stop(m);
}

/* Others may wait for what stands in the frame of run.fn, a mutex or a wait group, and undo_wait
 * looks at it after the end. So the last steps of this goroutine have this room for themselves. */
#define LAST_STEPS 8192

static NOINLINE int call_below_room(void) {
    char room[LAST_STEPS];
    __asm__ volatile("" ::"r"(room) : "memory");
    int result = run.fn(run.argc, run.argv);
    __asm__ volatile("" ::"r"(room) : "memory"); /* no tail call */
    return result;
}

static void main_goroutine(void *arg) {
    run.result = call_below_room();
    if (in_forked_child()) ends_in_child();
    if (getm()->curg->spare != NULL) exit_hook_jumped();
    values_over(getm()->curg);
    tsan_release(&run);
    collect_apart(stop_for_good);
    M *m = getm();
    lock(&sched.lock, RANK_SCHED);
    store_seq(&sched.running, 0);
    unlock(&sched.lock);
    m->dying = true;
    leave_for_good(m, main_left, NULL);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Threads that ended without a word, or that a child made while no runtime ran does not have. */
static void forget_the_gone(M *self) {
    fork_renumber();
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (m != self && load_acq(&m->alive) && m->tid != 0 && os_tgkill(m->tid, 0) == -ESRCH)
            m_count_out(m);
}

/* A thread that was left behind ends at any time, and counts itself out of the runtime that it
 * belongs to (thread_main): so the epoch and the count change together. */
static void reset_queues(void) {
    lock(&sched.lock, RANK_SCHED);
    add_rlx(&sched.epoch, 1);
    sched.global = (GList){0};
    sched.spilled = (Spilled){0};
    sched.idle_ps = NULL;
    sched.idle_ms = NULL;
    sched.idle_m_count = sched.m_count = 0;
    unlock(&sched.lock);
}

static void reset(void) {
    int64_t now = os_now();
    reset_queues();
    sched.npidle = sched.spinning = sched.stop_waiting = 0;
    sched.in_syscall = sched.taken = sched.soft_waiting = sched.poll_waiters = 0;
    sched.main_exited = sched.procs_fixed = 0;
    store_rlx(&sched.marks, sched.marks + (uint32_t)sched.next_id);
    sched.next_id = 1; /* 1 is the main goroutine's, whoever starts one first */
    /* also beyond procs: gort_maxprocs may bring back one with ids of an earlier run */
    for (uint32_t i = 0; i < MAX_PROCS && sched.ps[i]; i++)
        sched.ps[i]->id_next = sched.ps[i]->id_end = 0;
    sched.polled_at = sched.coarse = now;
    sched.poll_until = 0;
    world_reset();
}

/* From here on work is taken. Only when all is there: a plain thread may submit at any time. */
static void open_up(void) {
    lock(&sched.lock, RANK_SCHED);
    for (uint32_t i = sched.procs; i-- > 0;) idle_p_put_locked(sched.ps[i]);
    unlock(&sched.lock);
}

static int start(void) {
    fork_begin();
    reset();
    split_begin();
    const char *what = "memory";
    int r = procs_resize(NULL, (uint32_t)settings.procs);
    if (r < 0) goto ps;
    what = "descriptor for the poller";
    retake_start();
    inlibc_start();
    m_find_globals();
    hook_begin();
    mutex_start();
    if ((r = netpoll_start()) < 0) goto ps;
    what = "signal for preemption";
    if ((r = preempt_install()) < 0) goto poller;
    faults_install(run.first != NULL);
    what = "thread";
    if ((r = maker_start(main_refused)) < 0) goto handlers;
    if ((r = sysmon_start()) < 0) goto maker;
    return 0;
maker:
    maker_stop();
handlers:
    faults_uninstall();
    preempt_uninstall(false);
poller:
    netpoll_stop();
ps:
    store_rlx(&sched.procs, 0);
    print_fd(2, "gort: gort_main fails, %s: no %s to be had\n", errno_word(r), what);
    return r;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* After EXIT was set, and a barrier: the pair of no_longer_taken (preempt.c), block_end and
 * gort_exit_syscall. Without a barrier, seq_cst operations here and in block_end order it. */
static bool in_kernel(M *m) {
    G *gp = load_rlx(&m->curg);
    return (load_rlx(&m->attn) & ATTN_TAKEN) || (gp && load_seq(&gp->status) == G_SYSCALL) ||
           load_rlx(&m->finishing);
}

/* It runs, or will by itself: it waits for a page or a debugger. A sleep may last for ever. */
static bool goes_on(M *m) {
    char state = os_thread_state(m->tid);
    return state != 0 && state != 'S';
}

/* m's goroutine makes a gort_ call on a descriptor, and is perhaps not in the kernel with its
 * file yet: it would find the next file of that number, after the program has closed it. */
static bool numbers_on(M *m) {
    long nr = load_rlx(&m->numbered);
    if (nr == 0 || m->chances == PATIENCE) return false;
    long in = os_thread_sleeps_in(m->tid);
    return in == -2 ? os_thread_state(m->tid) == 'R' : in != nr;
}

/* One of those whose call nobody announced. Its goroutine is not to come back to the program: asks
 * it by signal to leave, and where it stands inside libc, to do so behind it (inlibc.c). True: it
 * has yet to answer, or is on its way out and runs. `again`: such a one is asked again, for it may
 * have jumped or thrown out of libc. Not each time: it would not get far, and patience is counted
 * in signals. One that sleeps in a callback of libc is waited for, too: it would run on there. */
static bool on_its_way(M *m, bool again) {
    G *gp = load_rlx(&m->curg);
    uint32_t where = load_rlx(&m->finishing);
    if (where != OUTSIDE) {
        bool runs = goes_on(m);
        if (runs && again) os_tgkill(m->tid, settings.preempt_signal);
        return runs || where == IN_CALLBACK;
    }
    if (gp == NULL) return false;
    if (load_rlx(&gp->status) == G_SYSCALL) return numbers_on(m);
    /* the interceptor that it sleeps in is not to be left by a handler */
    if (tsan_on() && os_thread_state(m->tid) != 'R') return true;
    if (load_rlx(&m->locks) != 0) return goes_on(m); /* steady (runtime.h): asked behind it */
    os_tgkill(m->tid, settings.preempt_signal);
    return true;
}

/* m, which was asked, could have answered since the last round: it sleeps, or has been on a CPU.
 * One that waits for a CPU could not. The monitor, whose note asked_cpu is, is gone. */
static bool had_a_chance(M *m) {
    int64_t cpu = os_thread_cpu(m->clock), before = m->asked_cpu;
    m->asked_cpu = cpu;
    return cpu != before || cpu < 0 || os_thread_state(m->tid) != 'R';
}

static M *next_of_ours(M *m) {
    while (m && (!load_acq(&m->alive) || m->plain || m->epoch != sched.epoch)) m = m->all;
    return m;
}

/* Tells all threads to go; how many are still on their way.
 *
 * One that is in the kernel now is left behind, with its goroutine. It comes back at any time, and
 * first says that it is back (TAKEN or the status G_SYSCALL is cleared), then looks at EXIT; we set
 * EXIT first and then look whether it is in there. So it sees EXIT and does nothing but go, or we
 * see that it is back and wait for it. Both sides have a full barrier between the two steps.
 * gort_exit_syscall has none: our membarrier serves both sides. Of those left behind, the ones on
 * their way are waited for as well, while there is patience; *staying: how many have used it up. */
static int send_away(int *staying, bool again) {
    int left = *staying = 0;
    for (M *m = next_of_ours(load_acq(&sched.all_ms)); m; m = next_of_ours(m->all))
        if (!(or_seq(&m->attn, ATTN_EXIT) & ATTN_EXIT)) note_wake(&m->note);
    os_membarrier(); /* where there is none, gort_exit_syscall is block_end */
    for (M *m = next_of_ours(load_acq(&sched.all_ms)); m; m = next_of_ours(m->all)) {
        G *gp = load_rlx(&m->curg);
        m->behind = in_kernel(m) ? gp : NULL;
        if (m->behind && !on_its_way(m, again)) continue;
        if (m->behind) m->chances += m->chances < PATIENCE && had_a_chance(m);
        if (m->behind && m->chances == PATIENCE) ++*staying;
        else left++;
    }
    return left;
}

/* Of a plain thread, or one left behind: it is in no section that may know a G of this runtime. */
static bool rests(M *m) {
    return !load_acq(&m->alive) || load_acq(&m->locks) <= load_rlx(&m->rest) ||
           !(load_rlx(&m->attn) & ATTN_SECTION);
}

/*
 * Waits until every section that is under way now has ended.
 *
 *   section                               end of the runtime
 *   locks++ (or rest = 0)                 running = 0 (or: off the queues)
 *   compiler barrier                      SECTION into attn of each M; barrier_everywhere
 *   read running (or the queues)          locks > rest, and SECTION still set: wait
 *
 * Each section reads before or after the barrier. Before: its count is seen, and it is waited for.
 * After: it sees what was stored. SECTION is cleared by leave() (preempt.c), so that a thread which
 * calls in without a pause is not waited for longer.
 */
static void await_sections(M *self) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (m != self && load_acq(&m->alive)) or_seq(&m->attn, ATTN_SECTION);
    barrier_everywhere();
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        while (m != self && !rests(m)) os_nap(20 * GORT_US);
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) and_seq(&m->attn, ~(uint32_t)ATTN_SECTION);
}

/* Not one that an earlier runtime has left behind: its thread buries it when it comes back, perhaps
 * this moment. Dead, gone from its M, the M's record reused, in this order (go_abandon): a reader
 * that sees one of these sees that it is dead. */
static bool is_ours(G *gp) {
    M *on = load_acq(&gp->m);
    bool late = on && load_acq(&on->behind) == gp && on->epoch != sched.epoch;
    return !late && load_acq(&gp->status) != G_DEAD && !(gp->flags & GF_THREAD);
}

static void undo_wait(G *gp, void *arg) {
    if (!is_ours(gp)) return;
    if (tsan_on() && gp->stack && !(gp->m && gp->m->behind == gp)) tsan_visit(gp->stack->san_fiber);
    if (chan_waits(gp)) chan_abandon(gp);
    else sleeper_abandon(gp);
}

/* What gp has begun, and will not end, is brought to its end for it: the functions of a wait group
 * or group count as ended, a once is free, a cancellation goes all the way (goexit.h). Behind all
 * of undo_wait: an object may go with its last member. Before any stack goes: it may stand on one.
 *
 * A goroutine that was left behind is among them: it does not go on in the program, and a waiter
 * does not wait for its call. Its chain is still: pushes and pops are in sections, now awaited. */
static void undo_work(G *gp, void *arg) {
    if (!is_ours(gp)) return;
    bool announced = gp->m && gp->m->behind == gp && load_rlx(&gp->status) == G_SYSCALL;
    ExitHook *h = announced ? gp->m->announced : gp->spare;
    for (ExitHook *next; h != NULL; h = next) {
        exit_hook_check(gp, h, NULL); /* its sp is not known: it may be in a call */
        next = h->next;
        if (h->abandon) h->abandon(h);
    }
    /* of one whose call is under way, that may change yet: it ends with the call (go_abandon) */
    if ((gp->odd & ODD_USES) && !announced) ctx_use_ends(gp);
    if (gp->fn == wg_member_run) wg_member_abandon(gp->arg);
    if (gp->fn == group_member_run) group_member_abandon(gp->arg);
    if (gp->fn == ctx_after_run) ctx_after_abandon(gp->arg);
}

/* One that was left behind and is not back yet is buried by its own thread (left, preempt.c). */
static void abandon(G *gp, void *arg) {
    M *m = arg, *on = gp->m;
    if (!is_ours(gp)) return;
    bool behind = on && on->behind == gp;
    add_rlx(&sched.other.ended, 1); /* the next runtime begins with none */
    if (behind && xchg_seq(&gp->stack->settled, 1) == 0) return;
    go_abandon(m, gp);
}

static void take_back(M *m) {
    each_g(undo_wait, NULL);
    each_g(undo_work, NULL);
    house_release_all();
    await_sections(m);
    for (uint32_t i = 0; i < sched.procs; i++) {
        P *p = sched.ps[i];
        GList list = {0};
        runq_drain(p, &list);
        timers_clear(&p->timers);
        g_flush(p);
        stack_flush(p);
        compact_flush(p);
        alloc_flush(p);
        store_rlx(&p->m, NULL);
        p->turn = p->look = 0;
        store_rlx(&p->status, P_DEAD);
    }
    each_g(abandon, m);
    store_rlx(&sched.procs, 0);
}

static void stop(M *m) {
    sysmon_stop();
    maker_stop();
    int staying;
    for (int round = 0; send_away(&staying, round % ASK_AGAIN == 0) > 0; round++) {
        netpoll_break(); /* one may wait there for a timer that is hours away */
        os_nap(50 * GORT_US);
    }
    if (staying > 0)
        warn_once(WARN_STAYS,
                  "%d goroutines sleep in the kernel and take no signal, or block signal %d: they "
                  "may run on after the end of the runtime",
                  staying, settings.preempt_signal);
    tsan_acquire(&sched); /* what goroutines did on threads that have gone */
    await_sections(m);
    world_answer_requests(m);
    netpoll_stop();
    faults_uninstall();
    preempt_uninstall(staying > 0);
    take_back(m);
}

/* Threads that have left the runtime still run destructors of their keys, beside those of the
 * program that begin when main returns. A destructor may wait for ever, and a number may be another
 * thread's by now: so with patience. */
#define GONE_ROUNDS 4000 /* of 50 us, for all */
static void await_threads(void) {
    int rounds = GONE_ROUNDS;
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        if (m->plain || m->epoch != sched.epoch || load_acq(&m->alive)) continue;
        while (rounds-- > 0 && os_tgkill(m->tid, 0) == 0) os_nap(50 * GORT_US);
    }
    bodies_settle();
}

static void no_step(void) {}

/* A program without the floor inspect works; a request to look inside gets an answer. */
static const Inspection *inspect_or_say(void) {
    static const Inspection none = {no_step, no_step, no_step, no_step, no_step, no_step};
    if (upstairs.inspection) return upstairs.inspection;
    const char *asked = env_get("GORT_HTTP")    ? "GORT_HTTP"
                        : env_get("GORT_TRACE") ? "GORT_TRACE"
                        : settings.flight       ? "GORT_DEBUG=flight"
                                                : NULL;
    if (asked)
        warn_once(WARN_LEAN, "%s is ignored: this program was linked with libgort-lean.a", asked);
    return &none;
}

EXPORT int gort_main(int (*fn)(int argc, char **argv), int argc, char **argv) {
    if (in_forked_child()) return -ENOTCONN;
    if (fn == NULL) return -EINVAL;
    uint32_t idle = 0;
    if (!cas_seq(&sched.busy, &idle, 1)) return -EBUSY;
    fatal_watch_exit();
    env_read(); /* before the first system call, which may be one that is made to fail */
    M *m = getm();
    if (m == NULL && (m = m_adopt_or_null()) == NULL) {
        store_seq(&sched.busy, 0);
        return -ENOMEM;
    }
    int err = *m->errno_at, r = clock_resume();
    if (r == 0) r = signal_resume();
    if (run.first == NULL) collect_begin_run(); /* else its threads are known to it as ever */
    m->locks++;                                 /* one section, for the locks taken below */
    forget_the_gone(m);
    sim_begin();
    run.fn = fn;
    run.argc = argc;
    run.argv = argv;
    note_clear(&run.done);
    const Inspection *inspection = inspect_or_say();
    inspection->begin();
    if (r == 0) r = start();
    if (r == 0) {
        gort_attr attr = {.stack_size = MAIN_STACK + LAST_STEPS};
        uint32_t outsider = xchg_seq(&m->outsider, 0); /* it only waits */
        add_seq(&sched.in_syscall, 1); /* goroutine 1 is on its way: no deadlock (deadlock.c) */
        /* before any P can be taken: a new thread asks for it (m.c) */
        store_seq(&sched.running, 1);
        open_up();
        inspection->opened();
        sched.main_by = m;
        r = run.first ? go_on_body(m, run.first, "main", main_goroutine, NULL, (uintptr_t)fn + 1)
                      : go_start(m, &attr, main_goroutine, NULL, NULL, 0, (uintptr_t)fn + 1);
        sched.main_by = NULL;
        sysmon_uncount(&sched.in_syscall, 1);
        if (r == 0) {
            inspection->started();
            note_sleep(&run.done);
            tsan_acquire(&run);
            r = run.result;
        } else {
            store_seq(&sched.running, 0);
        }
        stop(m);
        await_threads();
        store_rlx(&m->outsider, outsider);
        inspection->stopped();
    }
    inspection->end();
    sim_end();
    m->locks--;
    collect_end_run();
    garbage_collect(); /* timers that went with the runtime */
    *m->errno_at = err;
    sysfault_report();
    store_seq(&sched.busy, 0);
    return r;
}

static struct {
    int (*fn)(int, char **);
    int argc;
    char **argv;
} leading;

static void lead(void) {
    body_lead_back(run.first, gort_main(leading.fn, leading.argc, leading.argv));
}

int hook_lead(void *room, char *lo, int (*fn)(int, char **), int argc, char **argv) {
    leading.fn = fn;
    leading.argc = argc;
    leading.argv = argv;
    int r = load_rlx(&sched.busy) ? -EBUSY : body_lead(room, lo, lead, &run.first);
    if (r < 0) run.first = NULL;
    return r;
}

EXPORT int gort_version(void) { return GORT_VERSION_NUM; }
