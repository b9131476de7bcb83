/*
 * Timers whose signal is for one thread: SIGEV_THREAD_ID, by a number that the kernel does not
 * know.
 *
 * The kernel makes such a timer for the process, and its number is noted here. Its signals say
 * which timer sent them, so that whoever gets one (signal_comes, the catcher, a sigwait) hands it
 * to the timer's thread. As in the kernel one signal of a timer waits at a time, what comes
 * meanwhile is its overrun, and the signals of a thread that has ended, or of a timer that is
 * deleted, are nobody's. One may be on its way when its timer is deleted, so the last few of these
 * stay noted.
 *
 * A timer that runs by the CPU time of its maker binds that to a kernel thread, whose clock it
 * takes.
 */
#include "threads/signals.h"

#include <signal.h>

typedef struct Noted {
    struct Noted *next;
    int timer;      /* the kernel's number */
    Thread *thread; /* NULL: has ended, or the timer is deleted */
    bool deleted, stays;
    int overrun; /* of the signal that its thread had last */
} Noted;

#define TIMER_BUCKETS 256
#define LAST_DELETED 64
/* sigs.lock: */
static Noted *noted[TIMER_BUCKETS], *deleted[LAST_DELETED];
static uint32_t deleted_next;
static uint32_t timers_noted; /* atomic: a hint */

/* sigs.lock. Where the note is, or would be. */
static Noted **noted_at(int timer) {
    Noted **at = &noted[(unsigned)timer % TIMER_BUCKETS];
    while (*at && (*at)->timer != timer) at = &(*at)->next;
    return at;
}

static bool may_be_noted(const siginfo_t *info) {
    return info->si_code == SI_TIMER && load_rlx(&timers_noted) != 0;
}

bool timer_thread_locked(const siginfo_t *info, Thread **t) {
    Noted *n = may_be_noted(info) ? *noted_at(info->si_timerid) : NULL;
    if (n) *t = n->thread;
    return n != NULL;
}

bool timer_thread(const siginfo_t *info, Thread **t) {
    if (!may_be_noted(info)) return false;
    uint64_t old = sigs_lock();
    bool is_noted = timer_thread_locked(info, t);
    sigs_unlock(old);
    return is_noted;
}

void timer_taken(const siginfo_t *info) {
    if (!may_be_noted(info)) return;
    uint64_t old = sigs_lock();
    Noted *n = *noted_at(info->si_timerid);
    if (n) n->overrun = info->si_overrun;
    sigs_unlock(old);
}

bool timer_overruns_locked(SignalQueue *q, const siginfo_t *info) {
    Signal *s = info->si_code == SI_TIMER ? q->first : NULL;
    while (s && (s->info.si_code != SI_TIMER || s->info.si_timerid != info->si_timerid))
        s = s->next;
    if (s) s->info.si_overrun += 1 + info->si_overrun;
    return s != NULL;
}

void timers_end_locked(Thread *t) {
    if (load_rlx(&timers_noted) == 0) return;
    for (int i = 0; i < TIMER_BUCKETS; i++)
        for (Noted *n = noted[i]; n; n = n->next)
            if (n->thread == t) n->thread = NULL;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* threads.lock. */
static Thread *thread_told_locked(int tid) {
    Thread *own = thread_me();
    return own && own->tid == tid ? own : thread_by_tid(tid);
}
static bool tells_thread(const struct sigevent *event) {
    M *m = threads_lock();
    bool told = thread_told_locked(event->_sigev_un._tid) != NULL;
    threads_unlock(m);
    return told;
}

/* n serves where the number is new. The thread may have ended meanwhile. */
static void note_timer(Noted *n, int timer, int tid) {
    M *m = threads_lock();
    Thread *t = thread_told_locked(tid);
    uint64_t old = sigs_lock();
    Noted **at = noted_at(timer), *unused = *at ? n : NULL;
    if (*at == NULL) {
        *n = (Noted){.timer = timer};
        *at = n;
        add_rlx(&timers_noted, 1);
    }
    (*at)->deleted = false;
    (*at)->overrun = 0;
    (*at)->thread = t && t->sig.listed ? t : NULL;
    sigs_unlock(old);
    threads_unlock(m);
    if (unused) gort_free(unused);
}

static int timer_for_thread(clockid_t clock, const struct sigevent *event, timer_t *timer) {
    struct sigevent with = *event;
    Noted *n = gort_alloc(sizeof *n);
    if (n == NULL) return (int)returned(-EAGAIN);
    with.sigev_notify = SIGEV_SIGNAL;
    int r = libc(timer_create)(clock, &with, timer);
    if (r == 0) note_timer(n, (int)(intptr_t)*timer, event->_sigev_un._tid);
    else gort_free(n);
    return r;
}

/* libc's thread for these never ends, and nor does the program by main's pthread_exit. */
static void helper_counted(void) {
    static int has_one; /* a process */
    lives_begin();
    if (xchg_seq(&has_one, threads.process) != threads.process) add_seq(&threads.live, 1);
}

HOOK int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
    Thread *own = as_goroutines() ? thread_me() : NULL;
    if (own && is_own_clock(own, clock)) {
        thread_bind(own);
        clock = CLOCK_THREAD_CPUTIME_ID;
    }
    if (event && event->sigev_notify == SIGEV_THREAD && threads_asked_for()) helper_counted();
    if (own && event && event->sigev_notify == SIGEV_THREAD_ID && tells_thread(event))
        return timer_for_thread(clock, event, timer);
    return libc(timer_create)(clock, event, timer);
}

/* sigs.lock. Stays for a while; the one that goes instead, or NULL. */
static Noted *note_deleted_locked(Noted *n) {
    n->deleted = true;
    if (n->stays) return NULL;
    n->stays = true;
    Noted **place = &deleted[deleted_next++ % LAST_DELETED], *oldest = *place;
    *place = n;
    if (oldest == NULL) return NULL;
    oldest->stays = false;
    if (!oldest->deleted) return NULL;
    *noted_at(oldest->timer) = oldest->next;
    sub_rlx(&timers_noted, 1);
    return oldest;
}

HOOK int timer_delete(timer_t timer) {
    if (load_rlx(&timers_noted) != 0 && (intptr_t)timer >= 0 && !hook_in_child()) {
        uint64_t old = sigs_lock();
        Noted *n = *noted_at((int)(intptr_t)timer), *gone = NULL;
        if (n) {
            n->thread = NULL;
            gone = note_deleted_locked(n);
        }
        sigs_unlock(old);
        if (gone) gort_free(gone);
    }
    return libc(timer_delete)(timer);
}

/* The kernel counts from when it gave the signal away, which was not to the thread yet. */
HOOK int timer_getoverrun(timer_t timer) {
    int r = libc(timer_getoverrun)(timer);
    if (r < 0 || load_rlx(&timers_noted) == 0 || (intptr_t)timer < 0 || hook_in_child()) return r;
    uint64_t old = sigs_lock();
    const Noted *n = *noted_at((int)(intptr_t)timer);
    if (n) r = n->overrun;
    sigs_unlock(old);
    return r;
}
