/*
 * A trace from its events: which goroutine runs where, told in one of the forms of trace_form.h;
 * and the form of Chrome's JSON, which ui.perfetto.dev, chrome://tracing and speedscope open.
 *
 *   process 1  "processors": a track for each P. A slice is a goroutine on that P; its args say
 *              which (g) and how it ended (end: the wait reason, yield, preempted, exit, ...).
 *              An arrow leads from the slice that made a goroutine ready to that goroutine's next.
 *   process 2  "threads": a track for each M with its blocking calls.
 *   process 3  "runtime": stop-the-world, and wake-ups by threads without a P.
 *
 * The slices of a track nest or are disjoint, and every region that begins ends.
 *
 * Events come in the order of time (trace_read.c). A hash table that grows keeps the goroutines
 * that exist. gort-trace reads the file back: every event is a line, its keys in a fixed order.
 * fatal() calls this too: memory comes from mmap and output goes by write(2).
 */
#include "sched/describe.h"
#include "sched/g.h"
#include "sched/sched.h"
#include "debug/stats.h"
#include "unwind/symbols.h"
#include "inspect/trace_form.h"

#include <unistd.h>

#define SCHEDULING 100 /* ns of a slice of the scheduler's own */

/* ---- goroutines ------------------------------------------------------------------------------ */

static uint64_t task_home(const TraceWriter *w, uint64_t id) {
    return (id * 0x9E3779B97F4A7C15ULL >> 20) & (w->capacity - 1);
}

static Task *task_lookup(TraceWriter *w, uint64_t id) {
    uint64_t i = task_home(w, id);
    while (w->tasks[i].id && w->tasks[i].id != id) i = (i + 1) & (w->capacity - 1);
    return &w->tasks[i];
}

static bool tasks_grow(TraceWriter *w, uint64_t capacity) {
    Task *old = w->tasks;
    uint64_t n = w->capacity;
    Task *fresh = os_map(capacity * sizeof *fresh, false);
    if (fresh == NULL) return false;
    w->tasks = fresh;
    w->capacity = capacity;
    for (uint64_t i = 0; i < n; i++)
        if (old[i].id) *task_lookup(w, old[i].id) = old[i];
    if (old) os_unmap(old, n * sizeof *old);
    return true;
}

/* The task of goroutine id, new if it has none; NULL: no memory. */
static Task *task(TraceWriter *w, uint64_t id) {
    if (w->used * 2 >= w->capacity && !tasks_grow(w, w->capacity * 2)) return NULL;
    Task *k = task_lookup(w, id);
    if (k->id == 0) {
        *k = (Task){.id = id, .p = NO_P};
        w->used++;
    }
    return k;
}

/* Takes a task out; the tasks behind it in its run move up, so that no gap is left. */
static void task_forget(TraceWriter *w, Task *k) {
    uint64_t mask = w->capacity - 1, hole = (uint64_t)(k - w->tasks);
    for (uint64_t i = (hole + 1) & mask; w->tasks[i].id; i = (i + 1) & mask) {
        uint64_t home = task_home(w, w->tasks[i].id);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        w->tasks[hole] = w->tasks[i];
        hole = i;
    }
    w->tasks[hole].id = 0;
    w->used--;
}

/* ---- regions --------------------------------------------------------------------------------- */

/* A place for an open region; 0: no memory. */
static uint32_t region_new(TraceWriter *w) {
    uint32_t n = w->nregions, more = n ? n * 2 : 256;
    if (w->free_region == 0) {
        OpenRegion *fresh = os_map(more * sizeof *fresh, false);
        if (fresh == NULL) return 0;
        if (n) memcpy(fresh, w->regions, n * sizeof *fresh);
        if (n) os_unmap(w->regions, n * sizeof *fresh);
        for (uint32_t i = n ? n : 1; i + 1 < more; i++) fresh[i].outer = i + 1;
        w->free_region = n ? n : 1;
        w->regions = fresh;
        w->nregions = more;
    }
    uint32_t i = w->free_region;
    w->free_region = w->regions[i].outer;
    return i;
}

static void region_tell(TraceWriter *w, Task *k, const char *name, bool begins) {
    TraceEvent e = {.when = w->now, .g = k->id, .p = k->p, .kind = EV_REGION, .x = begins};
    memcpy(e.text, name, sizeof e.text);
    w->form->region(w, k, &e);
}

static void region_opens(TraceWriter *w, Task *k, const char *name) {
    uint32_t i = region_new(w);
    if (i == 0) return;
    memcpy(w->regions[i].name, name, TRACE_TEXT);
    w->regions[i].outer = k->region;
    k->region = i;
    region_tell(w, k, name, true);
}

/* Of k's innermost region. */
static void region_closes(TraceWriter *w, Task *k) {
    uint32_t i = k->region;
    region_tell(w, k, w->regions[i].name, false);
    k->region = w->regions[i].outer;
    w->regions[i].outer = w->free_region;
    w->free_region = i;
}

/* The innermost of that name ends, and what is open within it. An end without a beginning began
 * before the trace. */
static void region_ends(TraceWriter *w, Task *k, const char *name) {
    uint32_t i = k->region, outer;
    while (i && strcmp(w->regions[i].name, name) != 0) i = w->regions[i].outer;
    if (i == 0) return;
    outer = w->regions[i].outer;
    while (k->region != outer) region_closes(w, k);
}

/* k ends, or the trace. */
static void regions_close(TraceWriter *w, Task *k) {
    while (k->region) region_closes(w, k);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Microseconds with three decimals. */
static void out_us(Out *o, uint64_t ns) { out_fmt(o, "%lu.%03lu", ns / 1000, ns % 1000); }

/* Ticks as ns since the beginning. Lengths are differences of these: so that a slice ends, to the
 * ns, where the next may begin. */
static uint64_t json_ns(const TraceWriter *w, uint64_t ticks) {
    uint64_t first = w->source->first_tick;
    return ticks > first ? (uint64_t)((double)(ticks - first) * w->source->ns_per_tick) : 0;
}

/* Writes {"ph":"X","pid":1,"tid":0,"ts":1.000; the caller goes on with a comma. */
static Out *event_begin_ns(TraceWriter *w, char ph, int pid, uint64_t tid, uint64_t ns) {
    out_fmt(&w->out, "%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%lu,\"ts\":", w->comma ? ",\n" : "", ph,
            pid, tid);
    out_us(&w->out, ns);
    w->comma = true;
    return &w->out;
}

static Out *event_begin(TraceWriter *w, char ph, int pid, uint64_t tid, uint64_t ticks) {
    return event_begin_ns(w, ph, pid, tid, json_ns(w, ticks));
}

/* A slice from `from` to `to`, in ticks; the caller goes on with its name. */
static Out *slice_begin(TraceWriter *w, int pid, uint64_t tid, uint64_t from, uint64_t to) {
    uint64_t begin = json_ns(w, from), end = json_ns(w, to);
    Out *o = event_begin_ns(w, 'X', pid, tid, begin);
    out_str(o, ",\"dur\":");
    out_us(o, end > begin ? end - begin : 0);
    return o;
}

const char *task_name(const Task *k) {
    if (k->name[0]) return k->name;
    return k->fn ? symbol_of((uintptr_t)k->fn).name : NULL;
}

static void out_name(TraceWriter *w, const Task *k) {
    Out *o = &w->out;
    const char *name = task_name(k);
    out_str(o, ",\"name\":");
    if (name) out_json(o, name);
    else out_fmt(o, "\"G%lu\"", k->id);
}

static void slice(TraceWriter *w, int pid, uint64_t tid, uint64_t from, const Task *k,
                  const char *cat, const char *end) {
    Out *o = slice_begin(w, pid, tid, from, w->now);
    out_name(w, k);
    out_fmt(o, ",\"cat\":\"%s\",\"args\":{\"g\":%lu,\"end\":\"%s\"}}", cat, k->id, end);
}

/* The tracks that arrows begin on: those of the Ps, and behind them the runtime's. */
#define RUNTIME_TRACK MAX_PROCS
static unsigned json_track(uint16_t p) { return p < MAX_PROCS ? p : RUNTIME_TRACK; }

static Out *event_on(TraceWriter *w, char ph, unsigned track, uint64_t ns) {
    bool runtime = track == RUNTIME_TRACK;
    return event_begin_ns(w, ph, runtime ? 3 : 1, runtime ? 0 : track, ns);
}

/* On the track of e's P; without a P, on the runtime's. */
static Out *event_at(TraceWriter *w, char ph, const TraceEvent *e) {
    return event_on(w, ph, json_track(e->p), json_ns(w, e->when));
}

/* Ends the scheduler's slice, if there is one, where another slice begins. */
static void scheduling_ends(TraceWriter *w, unsigned track, uint64_t ns) {
    Scheduling *s = &w->scheduling[track];
    if (!s->open) return;
    s->open = false;
    out_str(event_on(w, 'E', track, s->until < ns ? s->until : ns),
            ",\"name\":\"scheduler\",\"cat\":\"sched\"}");
}

/* The scheduler does something at ns: within its slice, or in a new one. B and E, since the end
 * depends on what follows. */
static void scheduling_at(TraceWriter *w, unsigned track, uint64_t ns) {
    Scheduling *s = &w->scheduling[track];
    if (s->open && s->until < ns) scheduling_ends(w, track, s->until);
    if (!s->open)
        out_str(event_on(w, 'B', track, ns),
                ",\"name\":\"scheduler\",\"cat\":\"sched\",\"args\":{}}");
    *s = (Scheduling){true, ns + SCHEDULING};
}

static void json_instant(TraceWriter *w, const TraceEvent *e, const char *name, const char *key,
                         uint64_t v) {
    Out *o = event_at(w, 'i', e);
    out_fmt(o, ",\"s\":\"t\",\"name\":\"%s\",\"cat\":\"sched\",\"args\":{\"%s\":%lu}}", name, key,
            v);
}

static void meta(TraceWriter *w, int pid, int64_t tid, const char *kind, const char *name,
                 int64_t n) {
    Out *o = &w->out;
    out_fmt(o, "%s{\"ph\":\"M\",\"pid\":%d,\"tid\":%ld,\"name\":\"%s\",\"args\":{\"name\":\"%s",
            w->comma ? ",\n" : "", pid, tid, kind, name);
    if (n >= 0) out_fmt(o, "%ld", n);
    out_str(o, "\"}}");
    w->comma = true;
}

static bool json_begin(TraceWriter *w) {
    out_str(&w->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    return true;
}

static void json_runs(TraceWriter *w, Task *k, const TraceEvent *e) {
    scheduling_ends(w, e->p, json_ns(w, e->when));
    if (k->flow == 0) return;
    Out *o = event_begin(w, 'f', 1, e->p, e->when);
    out_fmt(o, ",\"bp\":\"e\",\"id\":%lu,\"name\":\"wake\",\"cat\":\"wake\"}", k->flow);
}

static void json_leaves(TraceWriter *w, Task *k, const char *end) {
    slice(w, 1, k->p, k->since, k, "run", end);
}

static void json_calls(TraceWriter *w, Task *k, const TraceEvent *e) {}

static void json_returns(TraceWriter *w, Task *k, const char *end) {
    slice(w, 2, k->on, k->call, k, "syscall", end);
}

/* An arrow must begin in a slice: where no goroutine runs, in one of the scheduler's. */
static void json_readied(TraceWriter *w, Task *k, const TraceEvent *e) {
    unsigned track = json_track(e->p);
    bool in_slice = track == RUNTIME_TRACK ? w->stopped != 0 : w->running[track] != 0;
    if (!in_slice) scheduling_at(w, track, json_ns(w, e->when));
    Out *o = event_at(w, 's', e);
    out_fmt(o, ",\"id\":%lu,\"name\":\"wake\",\"cat\":\"wake\",\"args\":{\"g\":%lu,\"by\":%lu%s}}",
            k->flow, k->id, e->y, e->x ? ",\"about\":1" : "");
}

static void json_created(TraceWriter *w, Task *k, const TraceEvent *e) {
    Out *o = event_at(w, 'i', e);
    out_str(o, ",\"s\":\"t\"");
    out_name(w, k);
    out_fmt(o, ",\"cat\":\"create\",\"args\":{\"g\":%lu,\"by\":%lu}}", k->id, e->y);
}

static void json_region(TraceWriter *w, Task *k, const TraceEvent *e) {
    Out *o = event_begin(w, e->x ? 'b' : 'e', 1, k->p == NO_P ? 0 : k->p, e->when);
    out_fmt(o, ",\"id\":%lu,\"name\":", k->id);
    out_json(o, e->text);
    out_fmt(o, ",\"cat\":\"region\",\"args\":{\"g\":%lu}}", k->id);
}

static void world_goes_on(TraceWriter *w) {
    if (w->stopped)
        out_str(slice_begin(w, 3, 0, w->stopped, w->now),
                ",\"name\":\"stop the world\",\"cat\":\"sched\",\"args\":{}}");
    w->stopped = 0;
}

static void json_world(TraceWriter *w, const TraceEvent *e) {
    world_goes_on(w);
    if (e->x) scheduling_ends(w, RUNTIME_TRACK, json_ns(w, e->when));
    if (e->x) w->stopped = e->when;
}

static void write_tracks(TraceWriter *w) {
    meta(w, 1, 0, "process_name", "processors (P)", -1);
    meta(w, 2, 0, "process_name", "threads in blocking calls (M)", -1);
    meta(w, 3, 0, "process_name", "runtime", -1);
    for (int p = 0; p < MAX_PROCS; p++)
        if (w->seen[p / 64] >> p % 64 & 1) meta(w, 1, p, "thread_name", "P", p);
}

const TraceSum trace_sums[] = {
    {"created", EV_CREATE},      {"ended", EV_END},        {"starts", EV_START},
    {"blocks", EV_BLOCK},        {"readied", EV_READY},    {"yields", EV_YIELD},
    {"preemptions", EV_PREEMPT}, {"syscalls", EV_SYSCALL}, {"handoffs", EV_HANDOFF},
    {"steals", EV_STEAL},        {"timers", EV_TIMER},     {NULL, 0}};

static void json_finish(TraceWriter *w) {
    world_goes_on(w);
    for (unsigned i = 0; i <= RUNTIME_TRACK; i++) scheduling_ends(w, i, UINT64_MAX);
    write_tracks(w);
    out_fmt(&w->out, "\n],\n\"otherData\":{\"by\":\"gort " GORT_VERSION "\",\"dropped\":%lu",
            w->source->dropped);
    for (const TraceSum *sum = trace_sums; sum->name; sum++)
        out_fmt(&w->out, ",\"%s\":%lu", sum->name, w->kinds[sum->kind]);
    out_str(&w->out, "}}\n");
    out_flush(&w->out);
}

static void json_free(TraceWriter *w) {}

const TraceForm json_form = {json_begin,   json_runs,    json_leaves,  json_calls,
                             json_returns, json_readied, json_created, json_region,
                             json_instant, json_world,   json_finish,  json_free};

/* ---- what the events mean -------------------------------------------------------------------- */

static void leaves(TraceWriter *w, Task *k, const char *end) {
    if (k->p == NO_P) return;
    w->form->leaves(w, k, end);
    if (k->p < MAX_PROCS && w->running[k->p] == k->id) w->running[k->p] = 0;
    k->p = NO_P;
}

/* Taking a P from a thread in the kernel (retake.c) is no event: the next goroutine shows it. */
static void displace(TraceWriter *w, uint16_t p) {
    uint64_t id = w->running[p];
    if (id == 0) return;
    Task *other = task_lookup(w, id);
    if (other->id == id && other->p == p) leaves(w, other, "lost its P");
}

/* No event need have said that k left where it ran: its P was taken, and k was queued when its
 * thread came back (acquire_p_or_queue). So running[p] is k exactly while k->p is p. */
static void runs(TraceWriter *w, Task *k, const TraceEvent *e) {
    leaves(w, k, "lost its P");
    if (e->p < MAX_PROCS) displace(w, e->p);
    k->since = e->when;
    k->p = e->p;
    if (e->p >= MAX_PROCS) return;
    w->seen[e->p / 64] |= 1ULL << e->p % 64;
    w->running[e->p] = k->id;
    w->form->runs(w, k, e);
    k->flow = 0;
}

/* If the thread kept its P, nothing changes. */
static void resumes(TraceWriter *w, Task *k, const TraceEvent *e) {
    if (e->p != NO_P && k->p != e->p) runs(w, k, e);
}

static void about_goroutine(TraceWriter *w, const TraceEvent *e) {
    Task *k = task(w, e->g);
    if (k == NULL) return;
    switch (e->kind) {
    case EV_CREATE:
        k->fn = e->arg;
        w->form->created(w, k, e);
        break;
    case EV_NAME:
        memcpy(k->name, e->text, sizeof k->name);
        k->name_id = 0;
        break;
    case EV_EXISTS: k->fn = e->arg; break;
    case EV_START: runs(w, k, e); break;
    case EV_BLOCK: leaves(w, k, reason_text(e->x)); break;
    case EV_YIELD: leaves(w, k, "yield"); break;
    case EV_PREEMPT: leaves(w, k, "preempted"); break;
    case EV_READY:
        k->flow = ++w->flows;
        w->form->readied(w, k, e);
        break;
    case EV_SYSCALL:
        leaves(w, k, "syscall");
        k->call = e->when;
        k->on = e->y;
        w->form->calls(w, k, e);
        break;
    case EV_SYSEXIT:
        if (k->call) w->form->returns(w, k, "return");
        k->call = 0;
        break;
    case EV_RESUME: resumes(w, k, e); break;
    case EV_REGION:
        if (e->x) region_opens(w, k, e->text);
        else region_ends(w, k, e->text);
        break;
    default: /* EV_END */
        regions_close(w, k);
        leaves(w, k, "exit");
        task_forget(w, k);
        break;
    }
}

static void event(TraceWriter *w, const TraceEvent *e) {
    if (e->kind < EV_KINDS) w->kinds[e->kind]++;
    if (e->when > w->now) w->now = e->when;
    if (e->g) about_goroutine(w, e);
    else if (e->kind == EV_HANDOFF) w->form->instant(w, e, "handoff", "p", e->y);
    else if (e->kind == EV_STEAL) w->form->instant(w, e, "steal", "n", e->y);
    else if (e->kind == EV_POLL) w->form->instant(w, e, "poll", "n", e->y);
    else if (e->kind == EV_TIMER) w->form->instant(w, e, "timer", "n", 1);
    else if (e->kind == EV_WORLD) w->form->world(w, e);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void finish_slices(TraceWriter *w) {
    for (uint64_t i = 0; i < w->capacity; i++) {
        Task *k = &w->tasks[i];
        if (k->id == 0) continue;
        regions_close(w, k);
        leaves(w, k, "running");
        if (k->call) w->form->returns(w, k, "running");
    }
}

/* The file becomes no larger than the recording may. A pipe has no bound, nor has the flight
 * recorder's file: its end is what is wanted, and its memory has one. */
static bool file_is_full(TraceWriter *w, const TraceEvent *e) {
    const TraceSource *s = w->source;
    off_t size = lseek(w->out.fd, 0, SEEK_CUR);
    if (s->flight || size < 0 || (uint64_t)size < s->most) return false;
    uint64_t ns = (uint64_t)((double)(e->when - w->source->first_tick) * s->ns_per_tick);
    print_fd(
        2,
        "gort: the trace's file is full (%lu MB, GORT_DEBUG=tracemax): it ends %lums after its "
        "beginning\n",
        s->most >> 20, ns / GORT_MS);
    return true;
}

/* The flight recorder may have forgotten how a goroutine began; it may end meanwhile. */
static void task_known(G *gp, void *arg) {
    TraceWriter *w = arg;
    uint32_t status;
    Task *k = g_exists(gp, &status) ? task(w, gp->id) : NULL;
    if (k == NULL) return;
    k->fn = g_entry(gp);
    g_name(gp, k->name);
}

static void write_events(TraceWriter *w) {
    uint64_t n = 0;
    for (const TraceEvent *e; (e = w->source->next(w->source)) != NULL;) {
        event(w, e);
        if (++n % 1024 == 0 && file_is_full(w, e)) return;
    }
}

int trace_write(int fd, TraceSource *source) {
    TraceWriter *w = os_map(sizeof *w, false);
    if (w == NULL) return -ENOMEM;
    w->form = source->form;
    w->out = (Out){.fd = fd, .size = sizeof w->buf, .buf = w->buf};
    w->source = source;
    w->now = source->first_tick;
    bool ok = tasks_grow(w, 4096) && w->form->begin(w);
    if (ok) {
        if (source->flight) each_g(task_known, w);
        write_events(w);
        finish_slices(w);
        w->form->finish(w);
    }
    int r = ok ? w->out.failed : -ENOMEM;
    w->form->free(w);
    if (w->tasks) os_unmap(w->tasks, w->capacity * sizeof *w->tasks);
    if (w->regions) os_unmap(w->regions, w->nregions * sizeof *w->regions);
    os_unmap(w, sizeof *w);
    return r;
}
