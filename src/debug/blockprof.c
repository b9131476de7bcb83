/*
 * Where goroutines wait for each other, and who kept a lock too long.
 *
 *   block profile   the stack of the one that waited, and for how long, for waits on channels,
 *                   selects, mutexes, wait groups, conditions and semaphores
 *   mutex profile   the stack of the one that unlocked, with the time another had waited for it
 *
 * Both are taken where a waiter is made ready. At that moment its stack is at rest (law 2), so it
 * can be walked from outside, and the waker is the current goroutine, whose stack is walked from
 * inside. The scheduler calls here through the tracer's hooks (trace.c), which are off otherwise: a
 * profile sets a bit of its own in trace_on, and a goroutine that blocks while it is set notes the
 * exact time.
 *
 * Walking a stack takes microseconds, so waits are sampled as Go does it: one as long as the rate
 * or longer always, a shorter one with the probability of its share, and it then counts for as
 * many. The sums stay right on average. The rate begins at 10 us and doubles whenever more than 20
 * stacks were walked within 10 ms, so that a profile takes a few percent of a CPU at most, whatever
 * the program does.
 */
#include "debug/blockprof.h"
#include "debug/dump.h"
#include "mem/split/split.h"

#define RATE (10 * GORT_US)
#define WINDOW (10 * GORT_MS)
#define WALKS 20

Profile block_profile, mutex_profile;
const ProfileKind contention_kind = {.count = "contentions",
                                     .count_unit = "count",
                                     .value = "delay",
                                     .value_unit = "nanoseconds",
                                     .label = "goroutine",
                                     .period = 1};

static struct { /* all of it approximate: relaxed loads and stores by anybody */
    int64_t rate, window;
    uint32_t walks;
    uint64_t rng;
    uint32_t users; /* atomic: profiles that are on */
} sampling;

/* ---- sampling -------------------------------------------------------------------------------- */

static int64_t random_below(int64_t below) {
    uint64_t state = load_rlx(&sampling.rng), r = random_next(&state);
    store_rlx(&sampling.rng, state);
    return (int64_t)(r >> 1) % below;
}

/* How many waits this one stands for; 0: it is not taken. */
static uint64_t wait_weight(int64_t delay) {
    int64_t rate = load_rlx(&sampling.rate);
    if (delay >= rate) return 1;
    return random_below(rate) < delay ? (uint64_t)(rate / delay) : 0;
}

static void slow_down(int64_t now) {
    if (now - load_rlx(&sampling.window) > WINDOW) {
        store_rlx(&sampling.window, now);
        store_rlx(&sampling.walks, 0);
    }
    uint32_t walks = load_rlx(&sampling.walks) + 1;
    store_rlx(&sampling.walks, walks);
    if (walks % WALKS == 0) store_rlx(&sampling.rate, load_rlx(&sampling.rate) * 2);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Without the frames of the scheduler, down to that of ready(). */
static void drop_scheduler(Sample *s, uintptr_t pc) {
    for (int i = 0; i < s->depth; i++) {
        if (s->pcs[i] != pc) continue;
        s->depth = (uint8_t)(s->depth - i - 1);
        memmove(s->pcs, s->pcs + i + 1, s->depth * sizeof s->pcs[0]);
        return;
    }
}

typedef struct Wait {
    Profile *f;
    G *gp;
    int reason;
    uint64_t count;
    int64_t delay;
    uintptr_t pc; /* where the scheduler's part of the stack ends; 0: it has none */
} Wait;

/* A backtrace needs more than a compact stack has: by call_with_room. */
static long add_wait(void *arg) {
    Wait *w = arg;
    if (!profile_enter(w->f)) return 0;
    Sample s = {.status = G_WAITING, .reason = (uint8_t)w->reason};
    s.depth = (uint8_t)backtrace_g(w->gp, NULL, s.pcs, PROFILE_DEPTH);
    if (w->pc) drop_scheduler(&s, w->pc);
    g_name(w->gp, s.name);
    s.entry = g_entry(w->gp);
    if (s.depth > 0) profile_add(w->f, &s, w->count, (int64_t)w->count * w->delay);
    profile_leave(w->f);
    return 0;
}

static bool is_lock(int reason) {
    return reason == WAIT_MUTEX || reason == WAIT_RWMUTEX_R || reason == WAIT_RWMUTEX_W;
}

static bool is_contention(int reason) {
    switch (reason) {
    case WAIT_CHAN_RECV:
    case WAIT_CHAN_SEND:
    case WAIT_SELECT:
    case WAIT_WG:
    case WAIT_COND:
    case WAIT_SEMA: return true;
    default: return is_lock(reason);
    }
}

void blockprof_ready(M *m, G *gp, uintptr_t pc) {
    int reason = gp->reason;
    if (gp->sp == NULL || !is_contention(reason)) return; /* NULL: it is new and has not waited */
    int64_t now = os_now(), delay = now - gp->since;
    uint64_t n = delay > 0 ? wait_weight(delay) : 0;
    if (n == 0) return;
    slow_down(now);
    call_with_room(m, add_wait, &(Wait){&block_profile, gp, reason, n, delay, 0});
    G *by = m ? m->curg : NULL;
    if (is_lock(reason) && by && by->id)
        call_with_room(m, add_wait, &(Wait){&mutex_profile, by, reason, n, delay, pc});
}

/* ---- sessions -------------------------------------------------------------------------------- */

int blockprof_begin(Profile *f) {
    int e = profile_begin(f);
    if (e < 0) return e;
    if (add_seq(&sampling.users, 1) == 1) {
        store_rlx(&sampling.rate, RATE);
        store_rlx(&sampling.rng, (uint64_t)os_now() | 1);
    }
    or_seq(&trace_on, TRACE_PROFILE);
    return 0;
}

void blockprof_end(Profile *f) {
    if (load_acq(&f->state) != PROFILE_ON) return;
    if (sub_seq(&sampling.users, 1) == 0) and_seq(&trace_on, ~TRACE_PROFILE);
    profile_end(f);
}
