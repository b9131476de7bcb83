/*
 * The maker.
 *
 * pthread_create mallocs, so it may wait for a lock whose holder was preempted and needs a P. A
 * thread that holds a P, the monitor and the handler must therefore never call it: they put the P
 * on the list here and wake the maker, which holds nothing. A thread that becomes idle meanwhile
 * takes the P from the list (wake.c), so the list never waits for the maker alone.
 *
 * The P stays on the list while its thread is being made, so that a stop of the world finds it: the
 * holder of malloc's lock goes on only when all have stopped (stopworld.c). A new thread takes a P
 * off the list, or goes to the pool. `coming` counts those on their way: one is made for each P.
 *
 * At the bound on threads (GORT_DEBUG=maxthreads, or EAGAIN of the system) the P stays on the list
 * until a thread is free. If not even the first thread of the runtime can be made, nothing has run:
 * gort_main takes everything back and returns the error (maker.refused). Otherwise the maker runs
 * the timers meanwhile. If no goroutine has run for ten seconds, and no thread can come
 * back from a call, the maker ends the process with a message.
 */
#include "sched/threadmaker.h"
#include "base/upstairs.h"
#include "sched/deadlock.h"
#include "sched/schedule.h"
#include "sched/m.h"
#include "sched/preempt.h"
#include "sched/wake.h"
#include "base/warn.h"

static struct {
    pthread_t thread;
    Note note;
    bool stop;
    bool made; /* the maker's: it has made a thread */
    void (*refused)(int error);
    /* sched.lock: */
    P *pending; /* Ps that wait for a thread, through link; read without the lock as a hint */
    uint32_t spinning; /* how many of them count as searchers */
    uint32_t spares;   /* threads wanted for the pool */
    uint32_t coming;   /* threads that were made, or are being made, and have not arrived */
} maker;

static void append_locked(P *p, bool spinning) {
    P **at = &maker.pending;
    while (*at) at = &(*at)->link;
    p->link = NULL;
    store_rlx(at, p);
    maker.spinning += spinning;
}

void maker_pend_locked(P *p, bool spinning) {
    p->pended_at = load_rlx(&sched.coarse);
    append_locked(p, spinning);
    note_wake(&maker.note);
}

P *maker_take_pending_locked(bool *spinning) {
    P *p = maker.pending;
    if (p == NULL) return NULL;
    store_rlx(&maker.pending, p->link);
    *spinning = maker.spinning > 0;
    maker.spinning -= *spinning;
    return p;
}

P *maker_pending_locked(void) { return maker.pending; }
bool maker_has_pending(void) { return load_rlx(&maker.pending) != NULL; }

void maker_want_spare_locked(void) {
    if (maker.spares > 0) return;
    maker.spares = 1;
    note_wake(&maker.note);
}

static uint32_t count_pending_locked(void) {
    uint32_t n = 0;
    for (P *p = maker.pending; p; p = p->link) n++;
    return n;
}

/* True: a thread is to be made, and counts as coming. False: none is wanted, or at the bound. */
static bool next_order(void) {
    lock(&sched.lock, RANK_SCHED);
    bool room = sched.m_count < (uint32_t)settings.maxthreads;
    bool any = room && count_pending_locked() > maker.coming;
    if (!any && maker.spares > 0) {
        maker.spares = 0;
        any = room && sched.idle_m_count + maker.coming < SPARES &&
              sched.m_count + 1 < (uint32_t)settings.maxthreads;
    }
    if (any) sched.m_count++, maker.coming++;
    unlock(&sched.lock);
    return any;
}

/* A P waits, and no thread is on its way: the bound is reached, or none can be made. */
static bool lacks_threads(void) {
    lock(&sched.lock, RANK_SCHED);
    bool more = count_pending_locked() > maker.coming;
    unlock(&sched.lock);
    return more;
}

P *maker_arrived_locked(bool *spinning) {
    maker.coming--;
    return maker_take_pending_locked(spinning);
}

/* p was off the list for a moment: gives it to an M that is idle by now, or puts it back. */
static void put_back(P *p, bool spinning) {
    lock(&sched.lock, RANK_SCHED);
    M *idle = idle_m_get_locked();
    if (idle == NULL) append_locked(p, spinning);
    unlock(&sched.lock);
    if (idle == NULL) return;
    idle->spinning = spinning;
    m_wake_with(idle, p, NULL);
}

static void take_back_order(void) {
    lock(&sched.lock, RANK_SCHED);
    sched.m_count--;
    maker.coming--;
    unlock(&sched.lock);
}

#define PATIENCE (10 * GORT_SEC)

/* No thread runs goroutines, and none is in a call: all are locked to goroutines that wait. */
static bool nobody_runs(void) {
    bool held = false;
    lock(&sched.lock, RANK_SCHED);
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) held |= load_rlx(&sched.ps[i]->m) != NULL;
    bool none = maker.pending && !held && load_acq(&sched.in_syscall) == 0 &&
                load_acq(&sched.taken) == 0 && !load_rlx(&sched.stop_waiting);
    unlock(&sched.lock);
    return none;
}

/* No thread can be made for a P: error; 0: the bound. *since: no G has run since; 0: one has. */
static void give_up_some_day(int64_t *since, uint64_t *switches, int error) {
    int64_t now = os_now();
    uint64_t before = *switches;
    *switches = p_switches();
    if (!nobody_runs() || *switches != before) *since = 0;
    else if (*since == 0) *since = now;
    else if (now - *since <= PATIENCE) return;
    else if (error) fatal("cannot make a thread that runs goroutines: %s", errno_word(error));
    else
        fatal("no thread runs goroutines: all of them, GORT_DEBUG=maxthreads=%d, are locked by "
              "goroutines that wait",
              settings.maxthreads);
}

/* A P that waits here may count as a searcher, for which idle Ps with timers wait, too. */
static void run_due_timers(M *own) {
    for (uint32_t i = 0; i < load_acq(&sched.procs); i++) {
        TimerHeap *h = &sched.ps[i]->timers;
        if (load_acq(&h->first) <= os_now()) run_timers(own, h, NULL);
    }
}

/* The maker runs the timers while a P waits here: no other thread does, and one locked to a sleeper
 * would never be free. The monitor then brings the G to its thread (give_late_p). */
static bool tend_one(M *own) {
    bool spinning = false;
    lock(&sched.lock, RANK_SCHED);
    P *p = load_rlx(&sched.stop_waiting) || !sched.running ? NULL
                                                           : maker_take_pending_locked(&spinning);
    unlock(&sched.lock);
    if (p == NULL) return false;
    m_acquire_p(own, p);
    run_due_timers(own);
    bump(&sched.tended, 1);
    m_release_p(own);
    put_back(p, spinning);
    return true;
}
static void tend_pending(M *own) {
    uint32_t n = load_rlx(&sched.procs);
    while (n > 0 && tend_one(own)) n--;
}

static void *maker_main(void *arg) {
    int64_t stuck_since = 0;
    uint64_t switches = 0;
    M *own = m_record(); /* only for its section count: locks are taken below */
    if (own) {
        own->plain = true;
        own->tid = os_gettid();
        preempt_unblock(); /* for interrupt_sleepers (preempt.c) */
        tls_m = own;
    }
    while (!load_acq(&maker.stop)) {
        int refused = 0;
        while (next_order()) {
            M *m = m_record();
            int r = m ? m_spawn(m) : -ENOMEM;
            if (r != 0) {
                if (m) m_record_free(m);
                take_back_order();
                if (!maker.made) {
                    maker.refused(r);
                    goto over;
                }
                warn_once(
                    WARN_THREADS,
                    "cannot make another thread, %s: a goroutine that computes, or sleeps in a "
                    "call, may hold up the others until one is free",
                    errno_word(r));
                refused = r;
                break;
            }
            maker.made = true;
        }
        if (maker_has_pending() && own && lacks_threads()) {
            give_up_some_day(&stuck_since, &switches, refused);
            tend_pending(own);
        }
        note_sleep_until(&maker.note,
                         maker_has_pending() ? time_after(os_now(), 10 * GORT_MS) : GORT_FOREVER);
    }
over:
    tls_m = NULL;
    if (own) m_record_free(own);
    return NULL;
}

int maker_start(void (*refused)(int error)) {
    maker.refused = refused;
    maker.stop = maker.made = false;
    maker.pending = NULL;
    maker.spinning = maker.spares = maker.coming = 0;
    note_clear(&maker.note);
    return own_thread(&maker.thread, 0, maker_main, NULL);
}

void maker_stop(void) {
    store_rel(&maker.stop, true);
    note_wake(&maker.note);
    pthread_join(maker.thread, NULL);
    add_rlx(&sched.threads, -1);
}
