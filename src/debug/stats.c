/*
 * gort_stats: the figures behind /metrics, schedtrace and the tests.
 *
 * Nothing is locked. Each P has its own counters, which its holder writes with plain stores; what
 * happens without a P is counted in sched.other. A reader adds them up, consistently:
 *
 *   - Counters never go back: each word only grows, and so does the set of Ps that are added up (Ps
 *     that gort_maxprocs has retired still count).
 *   - goroutines = created - ended, where `ended` is read first: a goroutine is counted as created
 *     before it can end, so the difference is never negative, and a goroutine that has started
 *     others sees them counted.
 *   - Gauges that bound each other (idle Ps and Ps, idle and searching threads and threads) change
 *     while they are read, and are clamped.
 */
#include "sched/globalq.h"
#include "sched/sched.h"
#include "mem/compact_stack.h"
#include "mem/span.h"
#include "mem/split/split.h"
#include "mem/stack.h"
#include "debug/stats.h"

static void add_up(Counters *sum, Counters *one) {
    uint64_t *to = (uint64_t *)sum, *from = (uint64_t *)one;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += load_rlx(&from[i]);
}

static uint64_t sum_ended(void) {
    uint64_t n = load_acq(&sched.other.ended);
    for (int i = 0; i < MAX_PROCS; i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p == NULL) break;
        n += load_acq(&p->n.ended);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* all other counters are read after `ended` */
    return n;
}

uint32_t p_queue(P *p) {
    uint32_t head = load_acq(&p->head), n = load_acq(&p->tail) - head;
    return n > RING ? 0 : n; /* head and tail were not read at one moment */
}

const char *m_state(M *m, G *gp) {
    if (m->plain) return "plain";
    if (load_rlx(&m->in_handler)) return "preempted";
    if (gp && load_rlx(&gp->status) == G_SYSCALL) return "syscall";
    if (load_rlx(&m->attn) & ATTN_TAKEN) return "in the kernel";
    if (m->spinning) return "spinning";
    if (gp) return "running";
    return load_rlx(&m->p) ? "scheduling" : "idle";
}

/* What each P has. */
static void add_ps(Counters *n, gort_stats *s) {
    for (int i = 0; i < MAX_PROCS; i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p == NULL) break;
        add_up(n, &p->n);
        s->local_queues += p_queue(p) + (load_rlx(&p->runnext) != NULL);
        s->timers += load_rlx(&p->timers.count);
    }
}

static uint64_t at_most(uint64_t v, uint64_t bound) { return v < bound ? v : bound; }

static void copy_counters(gort_stats *s, const Counters *n) {
    s->goroutines = n->created > n->ended ? n->created - n->ended : 0;
    s->goroutines_created = n->created;
#define COPY(name) s->name = n->name
    COPY(switches), COPY(steals), COPY(stolen), COPY(global_gets), COPY(overflows), COPY(handoffs);
    COPY(retakes), COPY(preempt_requests), COPY(preemptions), COPY(netpoll_wakeups);
    COPY(syscalls_blocking), COPY(allocs), COPY(frees), COPY(forced_collections);
#undef COPY
}

static void stats_fill(gort_stats *s) {
    Counters n = {0};
    M *m = enter();
    uint64_t ended = sum_ended();
    add_up(&n, &sched.other);
    add_ps(&n, s);
    n.ended = ended;
    copy_counters(s, &n);
    s->maxprocs = load_rlx(&sched.procs);
    s->idle_procs = at_most(load_rlx(&sched.npidle), s->maxprocs);
    s->threads = load_rlx(&sched.threads);
    s->idle_threads = at_most(load_rlx(&sched.idle_m_count), s->threads);
    s->spinning_threads = at_most(load_rlx(&sched.spinning), s->threads - s->idle_threads);
    s->global_queue = global_count();
    s->stack_bytes_reserved = stack_reserved() + slots_mapped();
    s->stack_bytes_cached =
        at_most(stack_cached() + compact_cached() + slots_free_bytes(), s->stack_bytes_reserved);
    s->threads_created = load_rlx(&sched.threads_created);
    s->alloc_bytes_used = span_bytes_used();
    s->alloc_bytes_cached = span_bytes_idle();
    s->stack_guard_kind = (uint64_t)stack_guard_kind();
    s->stack_mode = split.mode;
    s->stack_segments = split_segments();
    s->descriptors_remade = load_rlx(&sched.remade);
    leave(m);
}

/* A program may be older than the library, with fewer fields, or newer, with more. */
EXPORT void gort_stats_read_sized(gort_stats *to, size_t size) {
    gort_stats s = {0};
    size_t known = at_most(size, sizeof s);
    if (!in_forked_child()) stats_fill(&s);
    memcpy(to, &s, known);
    memset((char *)to + known, 0, size - known);
}

/* For callers without the header, which has it inline; the size never changes. */
EXPORT void gort_stats_read(gort_stats *to) {
    gort_stats_read_sized(to, offsetof(gort_stats, descriptors_remade) + sizeof(uint64_t));
}
