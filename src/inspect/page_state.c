/*
 * The scheduler's state as JSON, which the live page draws.
 *
 * Nothing is locked or stopped: G, M and P records are never freed, and each figure is true at the
 * moment it is read. A program may have 100,000 goroutines, so the page gets groups of them, by
 * name (or function) and status, with number and greatest age, and single ones on request.
 *
 * The goroutines that serve the page are left out, unless it asks for them.
 */
#include "sched/describe.h"
#include "sched/g.h"
#include "inspect/page.h"
#include "inspect/scratch.h"
#include "debug/stats.h"
#include "unwind/line.h"
#include "unwind/symbols.h"

#include <stdlib.h>

#define GROUPS 1024 /* places in the table */
#define GROUPS_SENT 60
#define MS_SENT 128
#define LONGEST_SENT 12
#define SITES_SENT 20

/* The function's name, as people read it; it may stand in room. */
static const char *function_title(uintptr_t pc, char room[SYMBOL_SHOWN]) {
    Named n = symbol_of(pc);
    if (n.name) return symbol_shown(n.name, room);
    print_buf(room, SYMBOL_SHOWN, "0x%lx", pc);
    return room;
}

static void out_symbol(Out *o, uintptr_t pc) {
    char room[SYMBOL_SHOWN];
    out_json(o, function_title(pc, room));
}

/* The goroutine's name, or that of its function. */
static void out_title(Out *o, G *gp) {
    char name[32];
    g_name(gp, name);
    if (name[0]) out_json(o, name);
    else out_symbol(o, g_entry(gp));
}

static int64_t age_ms(G *gp, int64_t now) {
    int64_t ms = (now - load_rlx(&gp->since)) / GORT_MS;
    return ms > 0 ? ms : 0;
}

/* ---- groups ---------------------------------------------------------------------------------- */

typedef struct Group {
    uint64_t key; /* 0: free */
    uint64_t count;
    int64_t oldest; /* ms */
    uintptr_t entry;
    uint64_t one; /* the oldest one's id */
    uint8_t status, reason;
    char name[32];
} Group;

typedef struct Groups {
    Group at[GROUPS];
    uint64_t used;
    int64_t now;
    bool own;
    G *longest[LONGEST_SENT]; /* wait, the longest first; NULL: no more */
    int64_t since[LONGEST_SENT];
} Groups;

static uint64_t group_hash(const char *name, uintptr_t entry, uint32_t status, int reason) {
    uint64_t h = entry * 0x9E3779B97F4A7C15ULL + status * 31 + (uint64_t)reason;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001B3ULL;
    h ^= h >> 29;
    return h ? h : 1;
}

static void note_longest(Groups *all, G *gp) {
    int64_t since = load_rlx(&gp->since);
    int i = LONGEST_SENT - 1;
    if (all->longest[i] && all->since[i] <= since) return;
    for (; i > 0 && (all->longest[i - 1] == NULL || all->since[i - 1] > since); i--) {
        all->longest[i] = all->longest[i - 1];
        all->since[i] = all->since[i - 1];
    }
    all->longest[i] = gp;
    all->since[i] = since;
}

static void count_one(G *gp, void *arg) {
    Groups *all = arg;
    uint32_t status;
    char name[32];
    if (!g_exists(gp, &status) || (!all->own && page_own(gp))) return;
    if (status == G_WAITING && !(gp->flags & GF_THREAD)) note_longest(all, gp);
    int reason = status == G_WAITING ? gp->reason : 0;
    g_name(gp, name);
    uintptr_t entry = name[0] ? 0 : g_entry(gp);
    uint64_t key = group_hash(name, entry, status, reason);
    uint64_t i = key % GROUPS;
    while (all->at[i].key && all->at[i].key != key) i = (i + 1) % GROUPS;
    Group *g = &all->at[i];
    if (g->key == 0) {
        if (all->used == GROUPS / 2) return; /* more groups than are ever sent */
        all->used++;
        *g = (Group){.key = key, .entry = entry, .one = gp->id, .status = (uint8_t)status};
        g->reason = (uint8_t)reason;
        memcpy(g->name, name, sizeof name);
    }
    int64_t ms = age_ms(gp, all->now);
    if (ms > g->oldest) {
        g->oldest = ms;
        g->one = gp->id;
    }
    g->count++;
}

static int by_count(const void *a, const void *b) {
    uint64_t x = ((const Group *)a)->count, y = ((const Group *)b)->count;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void out_group(Out *o, const Group *g) {
    out_str(o, "{\"name\":");
    if (g->name[0]) out_json(o, g->name);
    else out_symbol(o, g->entry);
    out_fmt(o, ",\"status\":\"%s\",\"n\":%lu,\"oldest\":%ld,\"one\":%lu}",
            status_text(g->status, g->reason), g->count, g->oldest, g->one);
}

/* The line that started it: a search in a table. Where it stands would take its whole trace. */
static void out_created_at(Out *o, uintptr_t pc) {
    char text[256];
    Line at = line_of(pc);
    if (at.file == NULL) return;
    print_buf(text, sizeof text, "%s:%u", at.file, at.line);
    out_str(o, ",\"created_at\":");
    out_json(o, text);
}

static void out_goroutine(Out *o, G *gp, uint32_t status, int64_t now) {
    out_fmt(o, "{\"id\":%lu,\"name\":", gp->id);
    out_title(o, gp);
    out_fmt(o, ",\"status\":\"%s\",\"ms\":%ld,\"entry\":", status_text(status, gp->reason),
            age_ms(gp, now));
    out_symbol(o, g_entry(gp));
    out_fmt(o, ",\"parent\":%u,\"created_by\":", gp->parent);
    out_symbol(o, gp->created_at - 1);
    out_created_at(o, gp->created_at - 1);
    out_str(o, "}");
}

/* Those that have gone on since they were noted are left out. */
static void out_longest(Out *o, const Groups *all) {
    uint32_t status, n = 0;
    out_str(o, ",\"longest\":[");
    for (int i = 0; i < LONGEST_SENT && all->longest[i]; i++) {
        G *gp = all->longest[i];
        if (!g_exists(gp, &status) || status != G_WAITING) continue;
        if (n++) out_str(o, ",");
        out_goroutine(o, gp, status, all->now);
    }
    out_str(o, "]");
}

static void out_groups(Out *o, bool own) {
    Groups *all = scratch_get(sizeof *all);
    if (all == NULL) return;
    out_str(o, ",\"groups\":[");
    all->now = os_now();
    all->own = own;
    each_g(count_one, all);
    qsort(all->at, GROUPS, sizeof(Group), by_count);
    for (int i = 0; i < GROUPS_SENT && all->at[i].count; i++) {
        if (i) out_str(o, ",");
        out_group(o, &all->at[i]);
    }
    out_str(o, "]");
    out_longest(o, all);
    scratch_free(all);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static const char *p_status(uint32_t s) {
    static const char *const words[] = {"idle", "running", "stopped", "dead"};
    return s < count_of(words) ? words[s] : "?";
}

/* For how long others have waited while p runs one goroutine beyond its slice; 0: not so. */
static int64_t held_ms(P *p, int64_t now) {
    int64_t when = load_rlx(&p->waited_when);
    if (when == 0 || load_rlx(&p->seen_tick) != load_rlx(&p->schedtick)) return 0;
    return now - when > 10 * GORT_MS ? (now - when) / GORT_MS : 0;
}

static void out_p_json(Out *o, P *p, int64_t now) {
    M *m = load_acq(&p->m);
    G *gp = m ? load_rlx(&m->curg) : NULL, *next = load_acq(&p->runnext);
    uint64_t id = gp ? load_rlx(&gp->id) : 0;
    out_fmt(o, "{\"id\":%u,\"status\":\"%s\",\"q\":%u,\"next\":%lu,\"timers\":%u,\"switches\":%lu",
            p->id, p_status(load_rlx(&p->status)), p_queue(p), next ? load_rlx(&next->id) : 0,
            load_rlx(&p->timers.count), load_rlx(&p->n.switches));
    if (m) out_fmt(o, ",\"m\":%u", m->id);
    if (id) {
        out_fmt(o, ",\"g\":%lu,\"ran\":%ld,\"held\":%ld,\"name\":", id, p_ran_us(p, now),
                held_ms(p, now));
        out_title(o, gp);
        if (page_own(gp)) out_str(o, ",\"own\":1");
    }
    out_str(o, "}");
}

static void out_ms(Out *o) {
    int n = 0;
    out_str(o, ",\"ms\":[");
    for (M *m = load_acq(&sched.all_ms); m && n < MS_SENT; m = load_acq(&m->all)) {
        if (!load_acq(&m->alive)) continue;
        G *gp = load_rlx(&m->curg);
        P *p = load_rlx(&m->p);
        out_fmt(o, "%s{\"id\":%u,\"state\":\"%s\"", n++ ? "," : "", m->id, m_state(m, gp));
        if (p) out_fmt(o, ",\"p\":%u", p->id);
        if (gp && gp->id) out_fmt(o, ",\"g\":%lu", gp->id);
        out_str(o, "}");
    }
    out_str(o, "]");
}

static void out_who(Out *o) {
    const Program *who = &page_program;
    out_str(o, ",\"who\":{\"program\":");
    out_json(o, who->name);
    out_str(o, ",\"host\":");
    out_json(o, who->host);
    out_fmt(o, ",\"pid\":%d,\"began\":%ld,\"version\":\"" GORT_VERSION "\"", who->pid, who->began);
    out_fmt(o, ",\"flight\":%ld,\"leak\":%ld}", settings.flight, settings.leak);
}

static void out_figures(Out *o, bool own) {
    gort_stats s;
    gort_stats_read_sized(&s, sizeof s);
    uint64_t ours = own ? 0 : page_own_count();
    s.goroutines -= ours < s.goroutines ? ours : s.goroutines;
    out_fmt(o, "{\"now\":%ld", os_now() / GORT_MS);
    for (const Figure *f = figures; f->field; f++)
        out_fmt(o, ",\"%s\":%lu", f->field, figure_of(&s, f));
    out_fmt(o, ",\"poll_waiters\":%u,\"in_syscall\":%u,\"taken\":%u,\"stopping\":%u",
            load_rlx(&sched.poll_waiters), load_rlx(&sched.in_syscall), load_rlx(&sched.taken),
            load_rlx(&sched.stop_waiting));
}

void page_snapshot(Out *o, const Snapshot *s) {
    int64_t now = os_now();
    out_figures(o, s->own);
    if (s->who) out_who(o);
    out_str(o, ",\"ps\":[");
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p == NULL) break;
        if (i) out_str(o, ",");
        out_p_json(o, p, now);
    }
    out_str(o, "]");
    out_ms(o);
    if (s->goroutines) out_groups(o, s->own);
    out_str(o, "}");
}

/* ---- single goroutines ----------------------------------------------------------------------- */

typedef struct List {
    Out *out;
    uint64_t limit, matched, sent;
    int64_t now;
    bool own;
    uintptr_t entry; /* the function that was asked for last, and its title; NULL: none was */
    const char *title;
    char room[SYMBOL_SHOWN];
    char filter[64];
    char name[256], status[32]; /* exactly this; "": any */
} List;

/* Goroutines of one function often follow each other. */
static const char *list_title(List *l, uintptr_t entry) {
    if (l->title == NULL || l->entry != entry) {
        l->title = function_title(entry, l->room);
        l->entry = entry;
    }
    return l->title;
}

static bool filter_matches(List *l, G *gp, uint32_t status) {
    char name[32];
    if (l->filter[0] == 0) return true;
    if (strstr(status_text(status, gp->reason), l->filter)) return true;
    g_name(gp, name);
    return strstr(name, l->filter) || strstr(list_title(l, g_entry(gp)), l->filter);
}

/* Is l->name gp's title? As out_title prints it. */
static bool is_titled(List *l, G *gp) {
    char name[32];
    g_name(gp, name);
    return strcmp(name[0] ? name : list_title(l, g_entry(gp)), l->name) == 0;
}

static bool matches(List *l, G *gp, uint32_t status) {
    if (!l->own && page_own(gp)) return false;
    if (l->status[0] && strcmp(status_text(status, gp->reason), l->status) != 0) return false;
    if (l->name[0] && !is_titled(l, gp)) return false;
    return filter_matches(l, gp, status);
}

static void list_one(G *gp, void *arg) {
    List *l = arg;
    uint32_t status;
    if (!g_exists(gp, &status) || !matches(l, gp, status)) return;
    if (l->matched++ >= l->limit) return;
    if (l->sent++) out_str(l->out, ",\n");
    out_goroutine(l->out, gp, status, l->now);
}

void page_goroutines_json(Out *o, const HttpRequest *r) {
    List l = {.out = o, .limit = http_number(r, "limit", 200), .now = os_now()};
    if (l.limit > 100000) l.limit = 100000;
    http_param(r, "filter", l.filter, sizeof l.filter);
    http_param(r, "name", l.name, sizeof l.name);
    http_param(r, "status", l.status, sizeof l.status);
    l.own = http_number(r, "own", 0) != 0;
    out_str(o, "{\"goroutines\":[\n");
    each_g(list_one, &l);
    out_fmt(o, "],\n\"matched\":%lu,\"sent\":%lu}\n", l.matched, l.sent);
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static void out_site(Out *o, const LeakSite *s) {
    out_fmt(o, "{\"n\":%lu,\"status\":\"%s\",\"youngest\":%ld,\"oldest\":%ld,\"entry\":", s->count,
            reason_text(s->reason), s->youngest / GORT_MS, s->oldest / GORT_MS);
    out_symbol(o, s->entry);
    out_str(o, ",\"created_by\":");
    out_symbol(o, s->created_at - 1);
    out_str(o, "}");
}

static int by_size(const void *a, const void *b) {
    uint64_t x = ((const LeakSite *)a)->count, y = ((const LeakSite *)b)->count;
    return x < y ? 1 : x > y ? -1 : 0;
}

void page_leaks_json(Out *o, Leaks *l, int64_t now, int64_t age) {
    memset(l, 0, sizeof *l);
    l->now = now;
    l->age = age;
    each_g(leak_collect, l);
    qsort(l->at, LEAK_SITES, sizeof l->at[0], by_size);
    out_fmt(o, "{\"ms\":%ld,\"goroutines\":%lu,\"sites\":[", age / GORT_MS, l->total);
    for (int i = 0; i < SITES_SENT && l->at[i].count; i++) {
        if (i) out_str(o, ",\n");
        out_site(o, &l->at[i]);
    }
    out_str(o, "]}\n");
}
