/*
 * The fallback clock: deadlines of contexts where no runtime runs.
 *
 * A context works between plain threads too, and outlives its runtime. Its channel must be closed
 * at the deadline, without monitor or heap: that takes a thread (ownthread.c). It starts with the
 * first deadline, sleeps to the earliest, calls what is due, and ends when none is left; for a
 * deadline that was taken back it may wake in vain. The deadlines stand in a sorted list, searched
 * from its end, since a later deadline is usually set later.
 *
 * The thread sleeps on a futex word that counts changes: it reads the word under the lock, looks at
 * the head, and sleeps unless the word has changed since. A new head adds one and wakes it.
 *
 * The thread may fail to start. So callers whose deadline comes while it is being started also call
 * clock_start(), and hear the result. In the child of a fork there is no thread: the process id
 * tells, and the next deadline starts one.
 */
#include "sync/clock.h"
#include "sched/goexit.h"
#include "sync/free_later.h"
#include "sync/ownthread.h"

static struct {
    Lock lock; /* RANK_TIMERS */
    /* lock: */
    ClockEntry *first, *last;
    bool running;  /* the thread is there, or about to be */
    bool starting; /* it is being started, and may fail */
    int pid;
    uint32_t changes;  /* atomic: the futex */
    uint32_t attempts; /* atomic: attempts to start it that are over; a futex too */
} clock_;

static void clock_insert(ClockEntry *e) {
    ClockEntry *after = clock_.last;
    while (after != NULL && after->when > e->when) after = after->prev;
    e->prev = after;
    e->next = after ? after->next : clock_.first;
    if (e->prev) e->prev->next = e;
    else clock_.first = e;
    if (e->next) e->next->prev = e;
    else clock_.last = e;
    e->queued = true;
}

static void clock_remove(ClockEntry *e) {
    if (e->prev) e->prev->next = e->next;
    else clock_.first = e->next;
    if (e->next) e->next->prev = e->prev;
    else clock_.last = e->prev;
    e->queued = false;
}

bool clock_add(ClockEntry *e, int64_t when, void (*fn)(ClockEntry *)) {
    e->when = when;
    e->fn = fn;
    lock(&clock_.lock, RANK_TIMERS);
    clock_insert(e);
    bool wake = clock_.first == e;
    bool start = !clock_.running || clock_.starting || clock_.pid != os_getpid();
    unlock(&clock_.lock);
    if (wake) {
        add_seq(&clock_.changes, 1);
        os_futex_wake(&clock_.changes, 1);
    }
    return start;
}

bool clock_del(ClockEntry *e) {
    M *m = enter();
    lock(&clock_.lock, RANK_TIMERS);
    bool was = e->queued;
    if (was) clock_remove(e);
    unlock(&clock_.lock);
    leave(m);
    return was; /* the thread may wake in vain, and ends if that was the last */
}

/* The next entry that is due, taken off. NULL: none before *until (0: the thread is to end). */
static ClockEntry *next_due(int64_t *until, uint32_t *seen) {
    int64_t now = os_now();
    M *m = enter();
    lock(&clock_.lock, RANK_TIMERS);
    ClockEntry *e = clock_.first;
    *seen = load_rlx(&clock_.changes);
    *until = e ? e->when : 0;
    if (e == NULL) clock_.running = false;
    else if (e->when <= now) clock_remove(e);
    else e = NULL;
    unlock(&clock_.lock);
    leave(m);
    return e;
}

bool clock_armed(void) {
    return load_rlx(&clock_.first) != NULL && load_rlx(&clock_.pid) == os_getpid();
}

/* An attempt to start the thread is over. In a section. */
static void starting_ends(bool runs) {
    lock(&clock_.lock, RANK_TIMERS);
    clock_.starting = false;
    clock_.running = runs;
    add_rlx(&clock_.attempts, 1);
    unlock(&clock_.lock);
    os_futex_wake(&clock_.attempts, INT32_MAX);
}
static void start_abandoned(ExitHook *h) { starting_ends(false); }

static void clock_main(void) {
    int64_t until;
    uint32_t seen;
    M *m = enter();
    starting_ends(true); /* its starter may have been stopped for good */
    leave(m);
    for (;;) {
        ClockEntry *e = next_due(&until, &seen);
        if (e != NULL) e->fn(e);
        else if (until == 0) break;
        else os_futex_wait(&clock_.changes, seen, until);
        garbage_collect();
    }
}

/* False: the thread is there. True: the caller starts it, with h in case its runtime ends first. */
static bool claim_start(ExitHook *h) {
    for (;;) {
        M *m = enter();
        lock(&clock_.lock, RANK_TIMERS);
        bool here = clock_.pid == os_getpid(), wait = here && clock_.starting;
        bool mine = !wait && !(here && clock_.running);
        uint32_t seen = load_rlx(&clock_.attempts);
        if (mine) {
            clock_.running = clock_.starting = true;
            clock_.pid = os_getpid();
        }
        unlock(&clock_.lock);
        if (mine) exit_hook_push(self(m), h);
        leave(m);
        if (!wait) return mine;
        os_futex_wait(&clock_.attempts, seen, GORT_FOREVER);
    }
}

int clock_start(void) {
    ExitHook h = {.abandon = start_abandoned};
    if (!claim_start(&h)) return 0;
    int r = own_thread_start(clock_main, NULL) == 0 ? 0 : -EAGAIN;
    M *m = enter();
    exit_hook_pop(self(m), &h);
    if (r < 0) starting_ends(false);
    leave(m);
    return r;
}
