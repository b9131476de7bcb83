/*
 * A trace as rows of numbers, for the timeline that the live page draws (web/page.html).
 *
 *     {"items":[
 *     [0,g,"name"],                       before the first slice of g
 *     [1,p,start,length,g,end],           a slice of g on p, in ns; end: an index of "ends"
 *     [1,p,start,length,g,end,wt,wp,wg],  likewise; wg, on wp (-1: on none), made g ready at wt
 *     [2,m,start,length,g],               a blocking call of g on thread m
 *     [3,start,length]                    the world was stopped
 *     ],"ends":["chan receive",...],"length":ns,"dropped":n,"full":false}
 *
 * A fifth of the JSON that other programs read, so a browser reads it at once. After MOST items no
 * more are told. As trace_write.c: mmap and write(2) only.
 */
#include "inspect/trace_form.h"
#include "sched/sched.h"

#define ENDS 64
#define MOST 1000000

typedef struct Timeline {
    const char *ends[ENDS];
    uint32_t nends;
    uint64_t items;
} Timeline;

static uint64_t timeline_ns(const TraceWriter *w, uint64_t ticks) {
    uint64_t first = w->source->first_tick;
    return ticks > first ? (uint64_t)((double)(ticks - first) * w->source->ns_per_tick) : 0;
}

/* False: there are enough. */
static bool item_begin(TraceWriter *w) {
    Timeline *l = w->more;
    if (l->items >= MOST) return false;
    if (l->items++) out_str(&w->out, ",\n");
    return true;
}

/* The index of one of the scheduler's words. */
static uint32_t timeline_end(Timeline *l, const char *end) {
    uint32_t i = 0;
    while (i < l->nends && strcmp(l->ends[i], end) != 0) i++;
    if (i == ENDS) return 0;
    if (i == l->nends) l->ends[l->nends++] = end;
    return i;
}

static void tell_name(TraceWriter *w, Task *k) {
    const char *name = task_name(k);
    if (k->name_id || !item_begin(w)) return;
    k->name_id = 1;
    out_fmt(&w->out, "[0,%lu,", k->id);
    if (name) out_json(&w->out, name);
    else out_fmt(&w->out, "\"G%lu\"", k->id);
    out_str(&w->out, "]");
}

static void out_span(TraceWriter *w, uint64_t from, uint64_t to) {
    uint64_t start = timeline_ns(w, from), end = timeline_ns(w, to);
    out_fmt(&w->out, "%lu,%lu", start, end > start ? end - start : 0);
}

static bool timeline_begin(TraceWriter *w) {
    w->more = os_map(sizeof(Timeline), false);
    out_str(&w->out, "{\"items\":[\n");
    return w->more != NULL;
}

static void timeline_runs(TraceWriter *w, Task *k, const TraceEvent *e) {
    if (k->flow == 0) k->woken = 0;
}

static void timeline_leaves(TraceWriter *w, Task *k, const char *end) {
    Out *o = &w->out;
    tell_name(w, k);
    if (!item_begin(w)) return;
    out_fmt(o, "[1,%u,", k->p);
    out_span(w, k->since, w->now);
    out_fmt(o, ",%lu,%u", k->id, timeline_end(w->more, end));
    if (k->woken && k->woken <= k->since)
        out_fmt(o, ",%lu,%d,%lu", timeline_ns(w, k->woken), k->woken_on == NO_P ? -1 : k->woken_on,
                k->waker);
    out_str(o, "]");
    k->woken = 0;
}

static void timeline_calls(TraceWriter *w, Task *k, const TraceEvent *e) {}

static void timeline_returns(TraceWriter *w, Task *k, const char *end) {
    tell_name(w, k);
    if (!item_begin(w)) return;
    out_fmt(&w->out, "[2,%lu,", k->on);
    out_span(w, k->call, w->now);
    out_fmt(&w->out, ",%lu]", k->id);
}

static void timeline_readied(TraceWriter *w, Task *k, const TraceEvent *e) {
    k->woken = e->when;
    k->waker = e->y;
    k->woken_on = e->p;
}

static void timeline_created(TraceWriter *w, Task *k, const TraceEvent *e) {}
static void timeline_region(TraceWriter *w, Task *k, const TraceEvent *e) {}
static void timeline_instant(TraceWriter *w, const TraceEvent *e, const char *name, const char *key,
                             uint64_t v) {}

static void timeline_world(TraceWriter *w, const TraceEvent *e) {
    if (!e->x && w->stopped && item_begin(w)) {
        out_str(&w->out, "[3,");
        out_span(w, w->stopped, e->when);
        out_str(&w->out, "]");
    }
    w->stopped = e->x ? e->when : 0;
}

static void timeline_finish(TraceWriter *w) {
    Timeline *l = w->more;
    Out *o = &w->out;
    out_str(o, "\n],\"ends\":[");
    for (uint32_t i = 0; i < l->nends; i++) {
        if (i) out_str(o, ",");
        out_json(o, l->ends[i]);
    }
    out_fmt(o, "],\"length\":%lu,\"dropped\":%lu,\"full\":%s}\n",
            timeline_ns(w, w->source->last_tick), w->source->dropped,
            l->items >= MOST ? "true" : "false");
    out_flush(o);
}

static void timeline_free(TraceWriter *w) {
    if (w->more) os_unmap(w->more, sizeof(Timeline));
}

const TraceForm timeline_form = {timeline_begin,   timeline_runs,    timeline_leaves,
                                 timeline_calls,   timeline_returns, timeline_readied,
                                 timeline_created, timeline_region,  timeline_instant,
                                 timeline_world,   timeline_finish,  timeline_free};
