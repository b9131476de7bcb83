/*
 * gort-trace summary FILE: the first questions to a trace.
 *
 *   where the time went   running, runnable, blocked and in calls, by goroutine name
 *   latencies             the longest waits from runnable to running, and their distribution
 *   who blocked whom      waits by waiter, reason and waker
 *
 * It reads both forms that gort writes. JSON (src/inspect/trace_write.c): an event on each line,
 * goroutines on the slices of process 1, wake-ups as the beginnings of arrows. A slice is written
 * when it ends and a wake-up when it happens, so the lines about one goroutine are in the order of
 * time. Perfetto's packets: pftrace.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace.h"

enum { UNKNOWN, RUNNABLE, BLOCKED, IN_CALL };

typedef struct Name { /* all goroutines of one name */
    char *text;
    double running, runnable, blocked, call;
    uint64_t goroutines, slices;
} Name;

typedef struct Task {
    uint64_t id;
    int name;
    int state;
    double since;
    int about; /* runnable since an unknown moment after that */
    int named; /* by a slice */
    char reason[40];
} Task;

typedef struct Edge { /* waits of one kind */
    int waiter, waker;
    char reason[40];
    double time;
    uint64_t count;
} Edge;

typedef struct Late {
    double wait, at;
    uint64_t g;
    int name;
} Late;

static Name *names;
static Task *tasks;
static Edge *edges;
static size_t nnames, cap_names, cap_tasks, ntasks, nedges, cap_edges;
static Late worst[10];
static uint64_t spread[10], nlate; /* by powers of ten from 1 us */
static double last;

static void *grow(void *p, size_t *cap, size_t size) {
    *cap = *cap ? *cap * 2 : 64;
    p = realloc(p, *cap * size);
    if (p == NULL) {
        fprintf(stderr, "gort-trace: no memory\n");
        exit(1);
    }
    return p;
}

/* ---- reading a line -------------------------------------------------------------------------- */

static const char *value(const char *line, const char *key) {
    const char *s = strstr(line, key);
    return s ? s + strlen(key) : NULL;
}
static double number(const char *line, const char *key) {
    const char *s = value(line, key);
    return s ? strtod(s, NULL) : 0;
}
static uint64_t integer(const char *line, const char *key) {
    const char *s = value(line, key);
    return s ? strtoull(s, NULL, 10) : 0;
}
/* A string up to its closing quote. Control characters stay escaped. */
static void text(const char *line, const char *key, char *to, size_t size) {
    const char *s = value(line, key);
    size_t n = 0;
    while (s && *s && *s != '"' && n + 1 < size) {
        if (*s == '\\' && (s[1] == '"' || s[1] == '\\')) s++;
        to[n++] = *s++;
    }
    to[n] = 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Entries' numbers by their hash, in open addressing: each goroutine may have its own name. */
typedef struct Index {
    size_t *at, cap, used; /* numbers from 1 on; 0: the place is free */
    uint64_t (*hash)(size_t i);
} Index;

static uint64_t text_hash(uint64_t h, const char *s) {
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3ULL;
    return h ^ h >> 29;
}

static void index_put(Index *x, size_t i) {
    size_t at = x->hash(i) & (x->cap - 1);
    while (x->at[at]) at = (at + 1) & (x->cap - 1);
    x->at[at] = i + 1;
}

static void index_add(Index *x, size_t i) {
    if (x->used * 2 >= x->cap) {
        free(x->at);
        x->cap = x->cap ? x->cap * 2 : 1024;
        x->at = calloc(x->cap, sizeof *x->at);
        if (x->at == NULL) exit(1);
        for (size_t k = 0; k < i; k++) index_put(x, k);
    }
    index_put(x, i);
    x->used++;
}

/* The next entry that may have this hash, or -1. *at: where to go on, the hash at first. */
static long index_next(const Index *x, uint64_t *at) {
    if (x->cap == 0) return -1;
    size_t i = x->at[(*at)++ & (x->cap - 1)];
    return (long)i - 1;
}

static uint64_t name_hash(size_t i) { return text_hash(1, names[i].text); }
static Index name_index = {.hash = name_hash};

static int name_of(const char *s) {
    uint64_t at = text_hash(1, s);
    for (long i; (i = index_next(&name_index, &at)) >= 0;)
        if (strcmp(names[i].text, s) == 0) return (int)i;
    if (nnames == cap_names) names = grow(names, &cap_names, sizeof *names);
    names[nnames] = (Name){.text = strdup(s)};
    index_add(&name_index, nnames);
    return (int)nnames++;
}

static Task *slot(Task *table, size_t cap, uint64_t id) {
    size_t i = (size_t)(id * 0x9E3779B97F4A7C15ULL >> 20) & (cap - 1);
    while (table[i].id && table[i].id != id) i = (i + 1) & (cap - 1);
    return &table[i];
}

static void rehash(void) {
    size_t cap = cap_tasks ? cap_tasks * 2 : 1024;
    Task *fresh = calloc(cap, sizeof *fresh);
    if (fresh == NULL) exit(1);
    for (size_t i = 0; i < cap_tasks; i++)
        if (tasks[i].id) *slot(fresh, cap, tasks[i].id) = tasks[i];
    free(tasks);
    tasks = fresh;
    cap_tasks = cap;
}

static Task *task_of(uint64_t id) {
    if (ntasks * 2 >= cap_tasks) rehash();
    Task *k = slot(tasks, cap_tasks, id);
    if (k->id == 0) {
        *k = (Task){.id = id, .name = -1};
        ntasks++;
    }
    return k;
}

/* A goroutine has the name of its first slice: before that, perhaps the function's. */
static void give_name(Task *k, const char *name, int runs) {
    if (k->named || (k->name >= 0 && !runs)) return;
    if (k->name >= 0) names[k->name].goroutines--;
    k->named = runs;
    k->name = name_of(name);
    names[k->name].goroutines++;
}

static uint64_t hash_of_edge(int waiter, int waker, const char *reason) {
    return text_hash((uint64_t)waiter * 0x9E3779B97F4A7C15ULL ^ (uint64_t)waker, reason);
}
static uint64_t edge_hash(size_t i) {
    return hash_of_edge(edges[i].waiter, edges[i].waker, edges[i].reason);
}
static Index edge_index = {.hash = edge_hash};

static Edge *edge_of(int waiter, int waker, const char *reason) {
    uint64_t at = hash_of_edge(waiter, waker, reason);
    for (long i; (i = index_next(&edge_index, &at)) >= 0;)
        if (edges[i].waiter == waiter && edges[i].waker == waker &&
            !strcmp(edges[i].reason, reason))
            return &edges[i];
    if (nedges == cap_edges) edges = grow(edges, &cap_edges, sizeof *edges);
    edges[nedges] = (Edge){.waiter = waiter, .waker = waker};
    strcpy(edges[nedges].reason, reason);
    index_add(&edge_index, nedges);
    return &edges[nedges++];
}

static void add_edge(int waiter, int waker, const char *reason, double time) {
    Edge *e = edge_of(waiter, waker, reason);
    e->time += time;
    e->count++;
}

static void add_latency(const Task *k, double wait, double at) {
    int bucket = 0;
    for (double limit = 1; bucket < 9 && wait >= limit; limit *= 10) bucket++;
    spread[bucket]++;
    nlate++;
    Late l = {wait, at, k->id, k->name};
    for (int i = 0; i < 10; i++) {
        if (l.wait <= worst[i].wait) continue;
        Late t = worst[i];
        worst[i] = l;
        l = t;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static int state_after(const char *end) {
    if (!strcmp(end, "yield") || !strcmp(end, "preempted") || !strcmp(end, "lost its P"))
        return RUNNABLE;
    return strcmp(end, "syscall") == 0 ? IN_CALL : BLOCKED;
}

static void ran(uint64_t g, const char *name, double ts, double dur, const char *end) {
    Task *k = task_of(g);
    give_name(k, name, 1);
    Name *n = &names[k->name];
    if (k->state == RUNNABLE && ts >= k->since) {
        n->runnable += ts - k->since;
        if (!k->about) add_latency(k, ts - k->since, ts);
    }
    n->running += dur;
    n->slices++;
    snprintf(k->reason, sizeof k->reason, "%s", end);
    k->state = state_after(k->reason);
    k->since = ts + dur;
    k->about = 0;
    if (!strcmp(k->reason, "exit") || !strcmp(k->reason, "running")) k->state = UNKNOWN;
}

static void called(uint64_t g, const char *name, double ts, double dur) {
    Task *k = task_of(g);
    give_name(k, name, 1);
    names[k->name].call += dur;
    k->state = RUNNABLE;
    k->since = ts + dur;
}

static void woken(uint64_t g, uint64_t by, double ts, int about) {
    int waker = by ? task_of(by)->name : -1;
    Task *k = task_of(g);
    if (k->state == BLOCKED && ts >= k->since) {
        names[k->name].blocked += ts - k->since;
        add_edge(k->name, waker, k->reason, ts - k->since);
    }
    k->state = RUNNABLE;
    k->since = ts;
    k->about = about;
}

static void json_event(const char *line) {
    double ts = number(line, "\"ts\":"), dur = number(line, "\"dur\":");
    uint64_t g = integer(line, "\"g\":");
    char name[128], end[40];
    text(line, "\"name\":\"", name, sizeof name);
    text(line, "\"end\":\"", end, sizeof end);
    if (ts > last) last = ts;
    if (strstr(line, "\"cat\":\"run\"")) ran(g, name, ts, dur, end);
    else if (strstr(line, "\"cat\":\"syscall\"")) called(g, name, ts, dur);
    else if (strstr(line, "\"ph\":\"s\""))
        woken(g, integer(line, "\"by\":"), ts, strstr(line, "\"about\":") != NULL);
    else if (strstr(line, "\"cat\":\"create\"")) give_name(task_of(g), name, 0);
}

/* ---- Perfetto's packets ---------------------------------------------------------------------- */

static struct Open {
    uint64_t track;
    PfEvent begun;
} * open_slices; /* one for each track with a goroutine on it, at most */
static size_t nopen, cap_open;

static struct Open *open_on(uint64_t track) {
    for (size_t i = 0; i < nopen; i++)
        if (open_slices[i].track == track) return &open_slices[i];
    return NULL;
}

static char whole_sums[1024]; /* as the last line of the JSON */

static void sum_up(const PfEvent *e) {
    size_t n = 0;
    for (unsigned i = 0; i < e->sums && n < sizeof whole_sums; i++)
        n += (size_t)snprintf(whole_sums + n, sizeof whole_sums - n, ",\"%s\":%" PRIu64,
                              e->sum[i].key, e->sum[i].v);
}

static void packet_ends(const PfEvent *e, double ts) {
    struct Open *o = open_on(e->track);
    if (o == NULL) return;
    double begun = (double)o->begun.ns / 1000;
    if (!strcmp(o->begun.category, "run"))
        ran(o->begun.g, o->begun.name, begun, ts - begun, e->end);
    else called(o->begun.g, o->begun.name, begun, ts - begun);
    *o = open_slices[--nopen];
}

static void packet_event(const PfEvent *e) {
    double ts = (double)e->ns / 1000;
    last = ts;
    if (e->type == PF_END) {
        packet_ends(e, ts);
    } else if (e->type == PF_BEGIN) {
        if (strcmp(e->category, "run") != 0 && strcmp(e->category, "syscall") != 0) return;
        if (nopen == cap_open) open_slices = grow(open_slices, &cap_open, sizeof *open_slices);
        open_slices[nopen++] = (struct Open){e->track, *e};
        give_name(task_of(e->g), e->name, 0);
    } else if (!strcmp(e->category, "wake")) {
        woken(e->g, e->by, ts, e->about != 0);
    } else if (!strcmp(e->category, "sums")) {
        sum_up(e);
    }
}

/* Adds the waits that the end of the trace cut off. */
static void finish(void) {
    for (size_t i = 0; i < cap_tasks; i++) {
        Task *k = &tasks[i];
        if (k->id == 0 || k->name < 0 || last < k->since) continue;
        if (k->state == BLOCKED) {
            names[k->name].blocked += last - k->since;
            add_edge(k->name, -2, k->reason, last - k->since);
        }
        if (k->state == RUNNABLE) names[k->name].runnable += last - k->since;
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *time_text(double us, char *buf, size_t size) {
    if (us < 1000) snprintf(buf, size, "%.1fus", us);
    else if (us < 1e6) snprintf(buf, size, "%.2fms", us / 1e3);
    else snprintf(buf, size, "%.3fs", us / 1e6);
    return buf;
}

static const char *waker_text(int i) {
    return i == -1   ? "(timer, poller or thread)"
           : i == -2 ? "(still waiting)"
           : i < 0   ? "?"
                     : names[i].text;
}

static int by_total(const void *a, const void *b) {
    const Name *x = a, *y = b;
    double p = x->running + x->runnable + x->call, q = y->running + y->runnable + y->call;
    return p < q ? 1 : p > q ? -1 : 0;
}
static int by_time(const void *a, const void *b) {
    double p = ((const Edge *)a)->time, q = ((const Edge *)b)->time;
    return p < q ? 1 : p > q ? -1 : 0;
}

static void print_latencies(void) {
    static const char *const label[] = {"<1us",  "<10us",  "<100us", "<1ms",
                                        "<10ms", "<100ms", "<1s",    "more"};
    char a[32], b[32];
    printf("\nscheduling latency (runnable to running), %" PRIu64 " times\n ", nlate);
    for (int i = 0; i < 8; i++) {
        uint64_t n = spread[i] + (i == 7 ? spread[8] + spread[9] : 0);
        printf(" %s %" PRIu64, label[i], n);
    }
    printf("\n");
    for (int i = 0; i < 10 && worst[i].wait > 0; i++)
        printf("  %10s  goroutine %" PRIu64 " %s at %s\n", time_text(worst[i].wait, a, sizeof a),
               worst[i].g, worst[i].name >= 0 ? names[worst[i].name].text : "?",
               time_text(worst[i].at, b, sizeof b));
}

static void print_edges(void) {
    char a[32];
    printf("\nwho blocked whom\n  %10s %9s  waiter, reason, ended by\n", "blocked", "times");
    qsort(edges, nedges, sizeof *edges, by_time);
    for (size_t i = 0; i < nedges && i < 20; i++)
        printf("  %10s %9" PRIu64 "  %s, %s, %s\n", time_text(edges[i].time, a, sizeof a),
               edges[i].count, names[edges[i].waiter].text, edges[i].reason,
               waker_text(edges[i].waker));
}

static void print_names(void) {
    char a[32], b[32], c[32], d[32];
    printf("%-24s %10s %9s %10s %10s %10s %10s\n", "goroutines", "number", "slices", "running",
           "runnable", "blocked", "in calls");
    Name *order = malloc((nnames + 1) * sizeof *order); /* edges know names by their number */
    if (order == NULL) exit(1);
    if (nnames) memcpy(order, names, nnames * sizeof *order);
    qsort(order, nnames, sizeof *order, by_total);
    for (size_t i = 0; i < nnames && i < 30; i++) {
        Name *n = &order[i];
        if (n->goroutines == 0) continue; /* a function whose goroutines have names of their own */
        printf("%-24.24s %10" PRIu64 " %9" PRIu64 " %10s %10s %10s %10s\n", n->text, n->goroutines,
               n->slices, time_text(n->running, a, sizeof a), time_text(n->runnable, b, sizeof b),
               time_text(n->blocked, c, sizeof c), time_text(n->call, d, sizeof d));
    }
    free(order);
}

/* NULL, or what is wrong. */
static const char *read_json(FILE *f, char *line, size_t cap, char *sums, size_t size) {
    do {
        if (strstr(line, "\"otherData\"")) snprintf(sums, size, "%.*s", 1000, line);
        else if (strncmp(line, "{\"ph\"", 5) == 0) json_event(line);
    } while (getline(&line, &cap, f) > 0);
    free(line);
    return NULL;
}

/* JSON begins with a brace, packets with the tag of the first. */
static const char *read_trace(FILE *f, char *sums, size_t size) {
    PfTrace t = {.event = packet_event};
    size_t cap = 0;
    char *line = NULL;
    int first = getc(f);
    if (first == '\n') {
        char start = (char)first;
        pf_read(&t, f, &start, 1);
        snprintf(sums, size, "%s", whole_sums);
        return t.problem;
    }
    ungetc(first, f);
    return getline(&line, &cap, f) > 0 ? read_json(f, line, cap, sums, size) : NULL;
}

static int summary(const char *path) {
    FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
    char a[32], sums[1024] = "";
    if (f == NULL) {
        fprintf(stderr, "gort-trace: %s: %s\n", path, strerror(errno));
        return 1;
    }
    const char *problem = read_trace(f, sums, sizeof sums);
    if (f != stdin) fclose(f);
    if (problem || sums[0] == 0) {
        fprintf(stderr, "gort-trace: %s: %s\n", path,
                problem ? problem : "not a complete gort trace");
        return 1;
    }
    finish();
    printf("%s: %s, %" PRIu64 " starts, %" PRIu64 " goroutines created, %" PRIu64
           " steals, %" PRIu64 " preemptions, %" PRIu64 " handoffs, %" PRIu64 " events dropped\n\n",
           path, time_text(last, a, sizeof a), integer(sums, "\"starts\":"),
           integer(sums, "\"created\":"), integer(sums, "\"steals\":"),
           integer(sums, "\"preemptions\":"), integer(sums, "\"handoffs\":"),
           integer(sums, "\"dropped\":"));
    print_names();
    print_latencies();
    print_edges();
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "summary") == 0) return summary(argv[2]);
    bool asked = argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0);
    fprintf(asked ? stdout : stderr,
            "usage: gort-trace summary FILE\n"
            "FILE is a trace by GORT_TRACE, gort_trace_start or /trace; - reads stdin.\n");
    return asked ? 0 : 2;
}
