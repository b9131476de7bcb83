/* /metrics: gort_stats, the run queue of each P and the goroutines by status, in Prometheus' text
 * format. Names follow its habits: a prefix, base units, `_total` on counters. */
#include "sched/describe.h"
#include "sched/g.h"
#include "inspect/page.h"
#include "debug/stats.h"

static void head(Out *o, const char *name, const char *type, const char *help) {
    out_fmt(o, "# HELP gort_%s %s\n# TYPE gort_%s %s\n", name, help, name, type);
}

static void figure(Out *o, const char *name, const char *type, const char *help, uint64_t v) {
    head(o, name, type, help);
    out_fmt(o, "gort_%s %lu\n", name, v);
}

#define GAUGE(field, name, help) \
    { #field, offsetof(gort_stats, field) / sizeof(uint64_t), name, "gauge", help }
#define COUNTER(field, help) \
    { #field, offsetof(gort_stats, field) / sizeof(uint64_t), #field "_total", "counter", help }
const Figure figures[] = {
    GAUGE(goroutines, "goroutines", "Goroutines that exist."),
    COUNTER(goroutines_created, "Goroutines started."),
    GAUGE(maxprocs, "maxprocs", "Ps in use."),
    GAUGE(idle_procs, "idle_procs", "Ps without a thread."),
    GAUGE(threads, "threads", "Threads of the runtime that are alive."),
    GAUGE(idle_threads, "idle_threads", "Threads asleep in the pool."),
    GAUGE(spinning_threads, "spinning_threads", "Threads that search for work."),
    GAUGE(global_queue, "global_queue", "Goroutines in the global run queue."),
    GAUGE(local_queues, "local_queues", "Goroutines in the run queues of all Ps."),
    COUNTER(switches, "Times a goroutine was put on a P."),
    COUNTER(steals, "Steals that succeeded."),
    COUNTER(stolen, "Goroutines moved by steals."),
    COUNTER(global_gets, "Goroutines taken from the global queue."),
    COUNTER(overflows, "Times a local queue overflowed."),
    COUNTER(handoffs, "Ps taken from a thread in a blocking call."),
    COUNTER(retakes, "Ps taken from a thread in a call that was not announced."),
    COUNTER(preempt_requests, "Goroutines asked to yield."),
    COUNTER(preemptions, "Preemptions carried out."),
    GAUGE(timers, "timers", "Armed timers, sleepers and deadlines included."),
    COUNTER(netpoll_wakeups, "Goroutines made ready by the poller."),
    COUNTER(syscalls_blocking, "Blocking calls that handed their P off."),
    COUNTER(threads_created, "Threads started."),
    GAUGE(stack_bytes_reserved, "stack_reserved_bytes", "Address space reserved for stacks."),
    GAUGE(stack_bytes_cached, "stack_cached_bytes", "Memory of stacks kept for reuse."),
    COUNTER(allocs, "Small objects allocated, those of the runtime included."),
    COUNTER(frees, "Small objects freed."),
    COUNTER(forced_collections, "Collections asked for by the monitor."),
    COUNTER(descriptors_remade, "Times the program closed the runtime's descriptors."),
    GAUGE(alloc_bytes_used, "alloc_used_bytes", "Memory of spans that hold small objects."),
    GAUGE(alloc_bytes_cached, "alloc_cached_bytes", "Memory of free spans kept for reuse."),
    {0},
};

uint64_t figure_of(const gort_stats *s, const Figure *f) { return ((const uint64_t *)s)[f->index]; }

static void out_stats(Out *o) {
    gort_stats s;
    gort_stats_read_sized(&s, sizeof s);
    for (const Figure *f = figures; f->field; f++)
        figure(o, f->metric, f->type, f->help, figure_of(&s, f));
    figure(o, "calls_roused_total", "counter",
           "Signals to threads that slept in a call which the hook had passed on.",
           load_rlx(&sched.roused));
    figure(o, "libc_traps_total", "counter",
           "libc calls whose return a stop of the world or the end of a runtime waited for.",
           load_rlx(&sched.trapped));
    figure(o, "timers_tended_total", "counter",
           "Times the timers of a P were run for which no thread could be made.",
           load_rlx(&sched.tended));
    figure(o, "poll_waiters", "gauge", "Goroutines that wait for a descriptor.",
           load_rlx(&sched.poll_waiters));
}

static void out_queues(Out *o) {
    head(o, "run_queue_length", "gauge",
         "Goroutines in the run queue of a P, its LIFO slot included.");
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p == NULL) break;
        out_fmt(o, "gort_run_queue_length{p=\"%u\"} %u\n", i,
                p_queue(p) + (load_rlx(&p->runnext) != NULL));
    }
}

typedef struct ByStatus {
    uint64_t status[8], reason[WAIT_REASONS];
} ByStatus;

static void add_status(G *gp, void *arg) {
    ByStatus *n = arg;
    uint32_t status;
    if (!g_exists(gp, &status)) return;
    if (status == G_WAITING) n->reason[gp->reason < WAIT_REASONS ? gp->reason : 0]++;
    else if (status < 8) n->status[status]++;
}

static void out_by_status(Out *o) {
    static const int plain[] = {G_RUNNABLE, G_RUNNING, G_SYSCALL};
    ByStatus n = {{0}, {0}};
    each_g(add_status, &n);
    n.status[G_SYSCALL] += n.reason[WAIT_SYSCALL]; /* status_text has one word for both */
    n.reason[WAIT_SYSCALL] = 0;
    head(o, "goroutines_by_status", "gauge", "Goroutines by what they do or wait for.");
    for (size_t i = 0; i < count_of(plain); i++)
        out_fmt(o, "gort_goroutines_by_status{status=\"%s\"} %lu\n",
                status_text((uint32_t)plain[i], 0), n.status[plain[i]]);
    for (int i = 0; i < WAIT_REASONS; i++)
        if (n.reason[i])
            out_fmt(o, "gort_goroutines_by_status{status=\"%s\"} %lu\n", reason_text(i),
                    n.reason[i]);
}

void page_metrics(Out *o) {
    out_stats(o);
    out_queues(o);
    out_by_status(o);
}
