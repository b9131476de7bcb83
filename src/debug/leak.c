/*
 * Leaks: goroutines that wait for something that never comes.
 *
 * A program that leaks goroutines leaks thousands of them at one or two places, so the report is by
 * place: what they wait for, the call that started them and the function it started.
 *
 *     gort: leak: 53 goroutines blocked for more than 10m
 *           50  chan receive, 12m to 14m: created by program+0x31 (app) with waiter
 *
 * A G knows since when it has been blocked (`since`, to a few ms), so nothing is recorded before a
 * report. The monitor reports once per period of GORT_DEBUG=leak=N, with a static table, since it
 * must not allocate; /leaks reports on request. Where the table is full, only a number is told.
 */
#include "debug/leak.h"
#include "debug/dump.h"
#include "debug/reports.h"
#include "sched/g.h"

static LeakSite *leak_site(Leaks *l, uintptr_t created_at, uintptr_t entry, uint8_t reason) {
    uint64_t hash = (created_at ^ entry * 31 ^ reason) * 0x9E3779B97F4A7C15ULL;
    uint32_t i = (uint32_t)(hash >> 40) & (LEAK_SITES - 1);
    for (;; i = (i + 1) & (LEAK_SITES - 1)) {
        LeakSite *s = &l->at[i];
        if (s->count == 0) {
            if (l->used == LEAK_SITES * 3 / 4) return NULL;
            l->used++;
            *s = (LeakSite){
                .created_at = created_at, .entry = entry, .reason = reason, .youngest = INT64_MAX};
            return s;
        }
        if (s->created_at == created_at && s->entry == entry && s->reason == reason) return s;
    }
}

void leak_collect(G *gp, void *arg) {
    Leaks *l = arg;
    if (load_acq(&gp->status) != G_WAITING || load_rlx(&gp->id) == 0) return;
    if (gp->flags & (GF_SYSTEM | GF_THREAD)) return;
    int64_t blocked = l->now - load_rlx(&gp->since);
    if (blocked < l->age) return;
    l->total++;
    LeakSite *s = leak_site(l, gp->created_at, g_entry(gp), gp->reason);
    if (s == NULL) {
        l->rest++;
        return;
    }
    s->count++;
    if (blocked < s->youngest) s->youngest = blocked;
    if (blocked > s->oldest) s->oldest = blocked;
}

static void print_site(Out *o, const LeakSite *s) {
    out_fmt(o, "  %6lu  %s, ", s->count, reason_text(s->reason));
    out_age(o, s->youngest, 1);
    if (s->oldest - s->youngest >= GORT_MS) {
        out_str(o, " to ");
        out_age(o, s->oldest, 1);
    }
    out_str(o, ": ");
    out_creator(o, s->created_at, 0, s->entry);
}

/* The largest first. Printing a place empties it. */
static void print_sites(Leaks *l, Out *o) {
    for (uint32_t n = 0; n < l->used; n++) {
        LeakSite *most = &l->at[0];
        for (int i = 1; i < LEAK_SITES; i++)
            if (l->at[i].count > most->count) most = &l->at[i];
        print_site(o, most);
        most->count = 0;
    }
}

uint64_t leak_report(Leaks *l, Out *o, int64_t now, int64_t age) {
    memset(l, 0, sizeof *l);
    l->now = now;
    l->age = age;
    each_g(leak_collect, l);
    if (l->total == 0) return 0;
    out_fmt(o, "gort: leak: %lu goroutine%s blocked for more than ", l->total,
            l->total == 1 ? "" : "s");
    out_age(o, age, 1);
    out_str(o, "\n");
    print_sites(l, o);
    if (l->rest) out_fmt(o, "  %6lu  elsewhere\n", l->rest);
    return l->total;
}

static Leaks periodic;   /* the monitor's table, */
static int64_t reported; /*   and when it was printed last */

static void leak_begin(int64_t now) { reported = now; }

static int64_t leak_due(int64_t now) {
    return settings.leak ? time_after(reported, settings.leak * GORT_MS) : GORT_FOREVER;
}

static void leak_look(M *m, int64_t now) {
    if (likely(settings.leak == 0) || now < leak_due(now)) return;
    char buf[2048];
    Out o = OUT(2, buf);
    reported = now;
    leak_report(&periodic, &o, now, settings.leak * GORT_MS);
    out_flush(&o);
}

const MonitorClient leak_client = {leak_begin, leak_look, leak_due};
