/*
 * Profiles in pprof's format, a protocol buffer, which `go tool pprof`, speedscope and Grafana
 * read. Function names come from our own symbol reader, so no binary is needed to read the file.
 *
 * Fields of the message (profile.proto): sample_type 1, sample 2, location 4, function 5,
 * string_table 6, time_nanos 9, duration_nanos 10, period_type 11, period 12. A nested message is
 * preceded by its length. Locations, functions and strings have numbers. Each address is one
 * location and one function of the same number: its index in the table of addresses, plus one. The
 * string table is the words ("", the kind's, labels of samples), then name and file of functions.
 */
#include "sched/describe.h"
#include "sched/g.h"
#include "inspect/profile.h"
#include "debug/stats.h"
#include "unwind/symbols.h"
#include "base/sysfault.h"

#include <stdlib.h>
#include <time.h>

#define ADDRESSES 16384
#define WORDS 4096

typedef struct Pprof {
    uintptr_t address[ADDRESSES]; /* open addressing; index + 1 is the location's number */
    uint32_t addresses;
    const char *words[WORDS];
    uint32_t nwords;
} Pprof;

/* The number of pc's location; 0: the table is full. */
static uint64_t pprof_location(Pprof *w, uintptr_t pc) {
    uint32_t i = (uint32_t)(pc * 0x9E3779B97F4A7C15ULL >> 40) & (ADDRESSES - 1);
    while (w->address[i] && w->address[i] != pc) i = (i + 1) & (ADDRESSES - 1);
    if (w->address[i] == 0) {
        if (w->addresses == ADDRESSES / 2) return 0;
        w->addresses++;
        w->address[i] = pc;
    }
    return i + 1;
}

/* The number of s, which must live as long as w; 0 (""): no room. */
static uint64_t pprof_string(Pprof *w, const char *s) {
    for (uint32_t i = 0; i < w->nwords; i++)
        if (strcmp(w->words[i], s) == 0) return i;
    if (w->nwords == WORDS) return 0;
    w->words[w->nwords] = s;
    return w->nwords++;
}

static void pb_varint(Out *o, uint64_t v) {
    do {
        char byte = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        out_bytes(o, &byte, 1);
        v >>= 7;
    } while (v);
}
static void pb_number(Out *o, int field, uint64_t v) {
    pb_varint(o, (uint64_t)field << 3);
    pb_varint(o, v);
}
static void pb_bytes(Out *o, int field, const char *s, size_t n) {
    pb_varint(o, (uint64_t)field << 3 | 2);
    pb_varint(o, n);
    out_bytes(o, s, n);
}

static void value_type(Out *o, Pprof *w, int field, const char *type, const char *unit) {
    char buf[32];
    Out m = OUT(-1, buf);
    pb_number(&m, 1, pprof_string(w, type));
    pb_number(&m, 2, pprof_string(w, unit));
    pb_bytes(o, field, m.buf, m.used);
}

static void pprof_sample(Out *o, Pprof *w, const ProfileKind *k, const Sample *s) {
    const char *text = strcmp(k->label, "goroutine") == 0 ? profile_goroutine(s)
                                                          : status_text(s->status, s->reason);
    char buf[PROFILE_DEPTH * 6 + 128], label[32];
    Out m = OUT(-1, buf), l = OUT(-1, label);
    for (int i = 0; i < s->depth; i++) {
        uint64_t n = pprof_location(w, i == 0 ? s->pcs[i] : s->pcs[i] - 1);
        if (n) pb_number(&m, 1, n);
    }
    pb_number(&m, 2, profile_count(k, s));
    if (k->value) pb_number(&m, 2, (uint64_t)load_rlx(&s->value));
    pb_number(&l, 1, pprof_string(w, k->label));
    pb_number(&l, 2, pprof_string(w, text));
    pb_bytes(&m, 3, l.buf, l.used);
    pb_bytes(o, 2, m.buf, m.used);
}

static void strings(Out *o, Pprof *w) {
    for (uint32_t i = 0; i < w->nwords; i++) pb_bytes(o, 6, w->words[i], strlen(w->words[i]));
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        if (w->address[i] == 0) continue;
        char text[32];
        Named n = symbol_of(w->address[i]);
        print_buf(text, sizeof text, "0x%lx", w->address[i]);
        const char *name = n.name ? n.name : text, *file = n.module ? module_name(n.module) : "?";
        pb_bytes(o, 6, name, strlen(name));
        pb_bytes(o, 6, file, strlen(file));
    }
}

static void locations(Out *o, Pprof *w) {
    uint64_t string = w->nwords;
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        if (w->address[i] == 0) continue;
        char place[64], line[16], function[64];
        Out p = OUT(-1, place), l = OUT(-1, line), f = OUT(-1, function);
        pb_number(&l, 1, i + 1); /* the function */
        pb_number(&p, 1, i + 1);
        pb_number(&p, 3, w->address[i]);
        pb_bytes(&p, 4, l.buf, l.used);
        pb_bytes(o, 4, p.buf, p.used);
        pb_number(&f, 1, i + 1);
        pb_number(&f, 2, string);
        pb_number(&f, 3, string);
        pb_number(&f, 4, string + 1);
        pb_bytes(o, 5, f.buf, f.used);
        string += 2;
    }
}

void pprof_write(Out *o, const Profile *f, int64_t duration) {
    const ProfileKind *k = f->kind;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    Pprof *w = sysfault_alloc() ? NULL : calloc(1, sizeof *w);
    if (w == NULL) {
        o->failed = -ENOMEM;
        return;
    }
    pprof_string(w, "");
    value_type(o, w, 1, k->count, "count");
    if (k->value) value_type(o, w, 1, k->value, "nanoseconds");
    for (uint32_t i = 0; i < PROFILE_STACKS; i++)
        if (load_acq(&f->at[i].ready)) pprof_sample(o, w, k, &f->at[i]);
    pb_number(o, 9, (uint64_t)(wall.tv_sec * GORT_SEC + wall.tv_nsec));
    if (duration) pb_number(o, 10, (uint64_t)duration);
    if (k->period_of_value) value_type(o, w, 11, k->value, "nanoseconds");
    else value_type(o, w, 11, k->count, "count");
    pb_number(o, 12, (uint64_t)k->period);
    locations(o, w); /* the list of words is complete */
    strings(o, w);
    free(w);
}

typedef struct Census {
    Profile *profile;
    bool creators; /* a stack of two frames: the goroutine's function, the place that started it */
} Census;

static void count_goroutine(G *gp, void *arg) {
    const Census *c = arg;
    uint32_t status;
    if (!g_exists(gp, &status)) return;
    Sample s = {.status = (uint8_t)status, .reason = status == G_WAITING ? gp->reason : 0};
    if (!c->creators) s.depth = (uint8_t)backtrace_g(gp, NULL, s.pcs, PROFILE_DEPTH);
    /* without a stack it has not run, or is not readable */
    if (s.depth == 0) s.pcs[s.depth++] = g_entry(gp) + 1;
    if (c->creators && gp->id > 1) s.pcs[s.depth++] = gp->created_at;
    profile_add(c->profile, &s, 1, 0);
}

int profile_goroutines(Profile *f, bool creators) {
    static const ProfileKind goroutines = {.count = "goroutine", .label = "status", .period = 1};
    f->kind = &goroutines;
    int e = profile_begin(f);
    if (e == 0) each_g(count_goroutine, &(Census){f, creators});
    return e;
}
