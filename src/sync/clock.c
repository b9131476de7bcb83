/*
 * The fallback clock: deadlines of contexts where no runtime runs.
 *
 * A context works between plain threads too, and outlives its runtime. Its channel must be closed
 * at the deadline, without monitor or heap: that takes a thread (ownthread.c). It starts with the
 * first deadline, sleeps to the earliest, calls what is due, and ends when none is left; for a
 * deadline that was taken back it may wake in vain. The deadlines stand in a heap as a P has one
 * (timer.c): the end of a runtime brings thousands. A program that has no such deadline pays 2.4 KB
 * of code, and has no such thread.
 *
 * The thread sleeps on a futex word that counts changes: it reads the word under the lock, looks at
 * the first, and sleeps unless the word has changed since. A new first adds one and wakes it.
 *
 * The thread may fail to start. So callers whose deadline comes while it is being started also call
 * clock_start(), and hear the result. A child of fork has the deadlines, and no thread: it starts
 * one with gort_main, with the next deadline or with the next look at a context. (Not as it begins:
 * most children call execve.)
 */
#include "sync/clock.h"
#include "sched/sysmon.h"
#include "sched/goexit.h"
#include "sync/free_later.h"
#include "sync/ownthread.h"

static struct {
    TimerHeap heap;
    /* heap.lock: */
    bool running;      /* the thread is there, or about to be */
    bool starting;     /* it is being started, and may fail */
    bool prepared;     /* atomic */
    uint32_t calling;  /* atomic: the thread calls what was due */
    uint32_t changes;  /* atomic: the futex */
    uint32_t attempts; /* atomic: attempts to start it that are over; a futex too */
} clock_ = {.heap.first = GORT_FOREVER};
bool clock_orphaned;

bool clock_prepare(void) {
    if (likely(load_rlx(&clock_.prepared))) return true;
    M *m = enter();
    lock(&clock_.heap.lock, RANK_TIMERS);
    bool ok = timers_prepare(&clock_.heap);
    store_rlx(&clock_.prepared, ok);
    unlock(&clock_.heap.lock);
    leave(m);
    return ok;
}

bool clock_add(Timer *t) {
    lock(&clock_.heap.lock, RANK_TIMERS);
    bool wake = timer_insert(&clock_.heap, t);
    bool start = !clock_.running || clock_.starting;
    unlock(&clock_.heap.lock);
    if (wake) {
        add_seq(&clock_.changes, 1);
        os_futex_wake(&clock_.changes, 1);
    }
    return start;
}

/* When the next is due; 0: none is left, and the thread is to end. */
static int64_t next_due(uint32_t *seen) {
    M *m = enter();
    lock(&clock_.heap.lock, RANK_TIMERS);
    *seen = load_rlx(&clock_.changes);
    clock_.running = clock_.heap.count > 0;
    int64_t until = clock_.running ? clock_.heap.first : 0;
    unlock(&clock_.heap.lock);
    leave(m);
    return until;
}

static bool call_due(void) {
    timer_fn *fn;
    void *arg;
    uint32_t seq;
    M *m = enter();
    store_seq(&clock_.calling, 1); /* until what it wakes is queued: the heap may be empty now */
    bool due = timer_take(&clock_.heap, os_now(), &fn, &arg, &seq);
    leave(m);
    if (due) fn(m, arg, seq);
    m = enter();
    sysmon_uncount(&clock_.calling, 1);
    leave(m);
    return due;
}

bool clock_armed(void) {
    const TimerHeap *h = &clock_.heap;
    return load_acq(&h->first) < NEVER || load_acq(&clock_.calling) != 0; /* as it moves */
}

void clock_in_child(void) {
    clock_.running = clock_.starting = false;
    store_rlx(&clock_.calling, 0);
    store_rlx(&clock_orphaned, clock_.heap.count != 0);
}

/* An attempt to start the thread is over. In a section. */
static void starting_ends(bool runs) {
    lock(&clock_.heap.lock, RANK_TIMERS);
    clock_.starting = false;
    clock_.running = runs;
    if (runs) store_rlx(&clock_orphaned, false);
    add_rlx(&clock_.attempts, 1);
    unlock(&clock_.heap.lock);
    os_futex_wake(&clock_.attempts, INT32_MAX);
}
static void start_abandoned(ExitHook *h) { starting_ends(false); }

static void clock_main(void) {
    int64_t until;
    uint32_t seen;
    M *m = enter();
    starting_ends(true); /* its starter may have been stopped for good */
    leave(m);
    while ((until = next_due(&seen)) != 0) {
        if (!call_due()) os_futex_wait(&clock_.changes, seen, until);
        garbage_collect();
    }
}

/* False: the thread is there. True: the caller starts it, with h in case its runtime ends first. */
static bool claim_start(ExitHook *h) {
    for (;;) {
        M *m = enter();
        lock(&clock_.heap.lock, RANK_TIMERS);
        bool wait = clock_.starting, mine = !wait && !clock_.running;
        uint32_t seen = load_rlx(&clock_.attempts);
        if (mine) clock_.running = clock_.starting = true;
        unlock(&clock_.heap.lock);
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
