/*
 * Block and mutex profiles: where goroutines wait for each other.
 *
 *   block profile   the waiter's stack, and how long it waited on a channel, a select, a mutex, a
 *                   wait group, a condition or a semaphore
 *   mutex profile   the stack of the goroutine that unlocked, with the time the waiter waited
 *
 * The waker takes both samples before it makes the waiter ready: the waiter has left its stack by
 * then, and the waker walks its own. The tracer calls here (trace.c): a profile sets its own bit in
 * trace_on, and a goroutine that blocks while it is set notes the exact time.
 *
 * Walking a stack takes microseconds, so waits are sampled as in Go. A wait of at least the rate is
 * always taken. A shorter one is taken with the probability delay / rate, and then counts as rate /
 * delay waits that lasted `rate` together: the sums are right on average. The count is a fraction,
 * since a whole number would be up to a half too small. The rate begins at 10 us and doubles
 * whenever 20 stacks were walked within 10 ms: a profile takes a few percent of a CPU at most.
 */
#include "inspect/profile.h"
#include "mem/split/split.h"
#include "sched/describe.h"
#include "sched/trace.h"

#define RATE (10 * GORT_US)
#define WINDOW (10 * GORT_MS)
#define WALKS 20

/* Wait reasons, a bit each. */
#define BIT(reason) ((uint64_t)1 << (reason))
#define LOCKS (BIT(WAIT_MUTEX) | BIT(WAIT_RWMUTEX_R) | BIT(WAIT_RWMUTEX_W))
#define CONTENTION                                                                         \
    (LOCKS | BIT(WAIT_CHAN_RECV) | BIT(WAIT_CHAN_SEND) | BIT(WAIT_SELECT) | BIT(WAIT_WG) | \
     BIT(WAIT_COND) | BIT(WAIT_SEMA))

static struct { /* approximate: relaxed loads and stores by any thread */
    int64_t rate, window;
    uint32_t walks;
    uint64_t rng;
    uint32_t users; /* atomic: profiles that are on */
} sampling;

bool wait_picked(int64_t delay, int64_t rate, uint64_t r, uint64_t *count, int64_t *value) {
    *count = WAIT_UNIT;
    *value = delay;
    if (delay >= rate) return true;
    if (delay <= 0 || (int64_t)(r >> 1) % rate >= delay) return false;
    *count = (uint64_t)((double)rate / (double)delay * WAIT_UNIT);
    *value = rate;
    return true;
}

static uint64_t wait_draw(void) {
    uint64_t state = load_rlx(&sampling.rng), r = random_next(&state);
    store_rlx(&sampling.rng, state);
    return r;
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

/* Drops the frames from the innermost to that of ready(), which pc lies in. */
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
    int64_t value;
    uintptr_t pc; /* in ready(), the last frame to drop; 0: drop none */
} Wait;

/* Called by call_with_room: a backtrace needs more room than a compact stack has. */
static long add_wait(void *arg) {
    Wait *w = arg;
    if (!profile_enter(w->f)) return 0;
    Sample s = {.status = G_WAITING, .reason = (uint8_t)w->reason};
    s.depth = (uint8_t)backtrace_g(w->gp, NULL, s.pcs, PROFILE_DEPTH);
    if (w->pc) drop_scheduler(&s, w->pc);
    g_name(w->gp, s.name);
    s.entry = g_entry(w->gp);
    if (s.depth > 0) profile_add(w->f, &s, w->count, w->value);
    profile_leave(w->f);
    return 0;
}

void blockprof_ready(M *m, G *gp, uintptr_t pc) {
    int reason = gp->reason;
    if (gp->sp == NULL || !(BIT(reason) & CONTENTION)) return; /* NULL: gp has not waited yet */
    int64_t now = os_now(), delay = now - gp->since, value;
    uint64_t n;
    if (delay <= 0) return;
    if (!wait_picked(delay, load_rlx(&sampling.rate), wait_draw(), &n, &value)) return;
    slow_down(now);
    call_with_room(m, add_wait, &(Wait){&block_profile, gp, reason, n, value, 0});
    G *by = m ? m->curg : NULL;
    if ((BIT(reason) & LOCKS) && by && by->id)
        call_with_room(m, add_wait, &(Wait){&mutex_profile, by, reason, n, value, pc});
}

static int blockprof_begin(Profile *f) {
    int e = profile_begin(f);
    if (e < 0) return e;
    if (add_seq(&sampling.users, 1) == 1) {
        store_rlx(&sampling.rate, RATE);
        store_rlx(&sampling.rng, (uint64_t)os_now() | 1);
    }
    or_seq(&trace_on, TRACE_PROFILE);
    return 0;
}

static void blockprof_end(Profile *f) {
    if (load_acq(&f->state) != PROFILE_ON) return;
    if (sub_seq(&sampling.users, 1) == 0) and_seq(&trace_on, ~TRACE_PROFILE);
    profile_end(f);
}

static const ProfileKind contention = {.count = "contentions",
                                       .value = "delay",
                                       .label = "goroutine",
                                       .period = 1,
                                       .unit = WAIT_UNIT,
                                       .begin = blockprof_begin,
                                       .end = blockprof_end};
Profile block_profile = {.kind = &contention}, mutex_profile = {.kind = &contention};
