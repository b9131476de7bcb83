/*
 * The maker.
 *
 * pthread_create mallocs, so it may wait for a lock whose holder was preempted and needs a P. A
 * thread that holds a P, the monitor and the handler must therefore never call it: they put the P
 * on the list here and wake the maker, which holds nothing. Whoever becomes idle meanwhile takes
 * the P from the list (wake.c), so the list never waits for the maker alone.
 *
 * With a collector (collect.c) a new thread first makes itself known to it, which may wait for a
 * goroutine that needs a P. So the P stays on the list meanwhile, the maker waits for the thread, and
 * only then gives it what is still on the list.
 *
 * At the bound on threads (GORT_DEBUG=maxthreads, or EAGAIN of the system) the P stays on the list
 * until a thread is free. Where not even the first of the runtime is granted, nothing has run: gort_main takes everything back
 * and returns the error (main_refused). Where there were some, and none is left, the maker asks for some time and then says
 * so: a program that waits for ever without a word helps nobody.
 */
#include "maker.h"
#include "collect.h"
#include "m.h"
#include "preempt.h"
#include "san.h"
#include "sysfault.h"
#include "warn.h"

#include <pthread.h>
#include <signal.h>

static struct {
    pthread_t thread;
    Note note, greeted;
    bool stop;
    bool made;           /* the maker's: there has been a thread */
    /* sched.lock: */
    P *pending;          /* Ps that wait for a thread, through link, the oldest first; NULL is read without the lock */
    uint32_t spinning;   /* how many of them count as searchers */
    uint32_t spares;     /* threads wanted for the pool */
} maker;

void maker_pend_locked(P *p, bool spinning) {
    P **at = &maker.pending;
    while (*at) at = &(*at)->link;
    p->link = NULL;
    p->pended_at = load_rlx(&sched.coarse);
    store_rlx(at, p);
    maker.spinning += spinning;
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

/* Takes what is wanted: a P, or NULL with *spare set. False: nothing is, or the bound is reached. */
static bool next_order(P **p, bool *spinning) {
    lock(&sched.lock, RANK_SCHED);
    bool room = sched.m_count < (uint32_t)settings.maxthreads;
    *p = room && !collect_on ? maker_take_pending_locked(spinning) : NULL;
    bool any = *p != NULL || (collect_on && room && maker.pending);
    if (!any && maker.spares > 0) {
        maker.spares = 0;
        any = room && sched.idle_m_count < SPARES && sched.m_count + 1 < (uint32_t)settings.maxthreads;
    }
    if (any) sched.m_count++;
    unlock(&sched.lock);
    return any;
}

/* The thread could not be made: the P goes back to the list, for whoever is free next. */
static void take_back(P *p, bool spinning) {
    lock(&sched.lock, RANK_SCHED);
    sched.m_count--;
    if (p) {
        p->link = maker.pending;
        store_rlx(&maker.pending, p);
        maker.spinning += spinning;
    }
    unlock(&sched.lock);
}

void maker_greet(M *m) {
    note_wake(&maker.greeted);
    note_sleep(&m->note);
}

static void welcome(M *m) {
    bool spinning = false;
    note_sleep(&maker.greeted);
    lock(&sched.lock, RANK_SCHED);
    m->nextp = maker_take_pending_locked(&spinning);
    m->spinning = m->nextp && spinning;
    unlock(&sched.lock);
    note_wake(&m->note);
}

#define PATIENCE (10 * GORT_SEC)

/* After a refusal: does any thread run goroutines? *since: when it was first seen that none does; 0: not so. */
static void give_up_some_day(int64_t *since, int error) {
    warn_once(WARN_THREADS, "cannot make another thread, error %d: a goroutine that computes, or sleeps in a call, may hold up "
                            "the others until one is free", -error);
    lock(&sched.lock, RANK_SCHED);
    bool none = sched.m_count == 0;
    unlock(&sched.lock);
    int64_t now = os_now();
    if (!none) *since = 0;
    else if (*since == 0) *since = now;
    else if (now - *since > PATIENCE) fatal("cannot make a thread that runs goroutines: error %d", -error);
}

static void *maker_main(void *arg) {
    int64_t refused_since = 0;
    M *own = m_record(); /* only for its section count: locks are taken below */
    if (own) {
        own->plain = true;
        own->tid = os_gettid();
        preempt_unblock(); /* futex(2) may be refused some day */
        tls_m = own;
    }
    while (!load_acq(&maker.stop)) {
        P *p;
        bool spinning = false;
        if (load_acq(&maker.stop)) break;
        while (next_order(&p, &spinning)) {
            M *m = m_record();
            if (m) {
                m->nextp = p;
                m->spinning = p && spinning;
            }
            int r = m ? m_spawn(m) : -ENOMEM;
            if (r != 0) {
                if (m) m_record_free(m);
                take_back(p, spinning);
                if (!maker.made) {
                    main_refused(r);
                    goto over;
                }
                give_up_some_day(&refused_since, r);
                break;
            }
            refused_since = 0;
            maker.made = true;
            if (collect_on) welcome(m);
        }
        note_sleep_until(&maker.note, maker.pending ? time_after(os_now(), 10 * GORT_MS) : GORT_FOREVER);
    }
over:
    tls_m = NULL;
    if (own) m_record_free(own);
    return NULL;
}

int maker_start(void) {
    sigset_t all, old;
    maker.stop = maker.made = false;
    maker.pending = NULL;
    maker.spinning = maker.spares = 0;
    note_clear(&maker.note);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = thread_create(&maker.thread, NULL, maker_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0) add_rlx(&sched.threads, 1);
    return -r;
}

void maker_stop(void) {
    store_rel(&maker.stop, true);
    note_wake(&maker.note);
    pthread_join(maker.thread, NULL);
    add_rlx(&sched.threads, -1);
}
