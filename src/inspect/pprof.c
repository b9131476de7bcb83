/*
 * Profiles in pprof's format, a protocol buffer, which `go tool pprof`, speedscope and Grafana
 * read. Function names come from our own symbol reader, so no binary is needed to read the file.
 *
 * Fields of the message (profile.proto): sample_type 1, sample 2, location 4, function 5,
 * string_table 6, time_nanos 9, duration_nanos 10, period_type 11, period 12. A nested message is
 * preceded by its length. Locations, functions and strings have numbers. Each address is one
 * location and one function of the same number, in the order in which they are met. What found no
 * place in the profile's table is a sample at address 0 with the function "(lost)". The
 * string table is the words ("", the kind's, labels of samples), then name and file of functions.
 * The file is that of the code, or "gort" in the library: so a reader can leave the library's
 * frames out.
 */
#include "debug/frames.h"
#include "sched/describe.h"
#include "sched/g.h"
#include "inspect/page.h"
#include "inspect/profile.h"
#include "inspect/scratch.h"
#include "debug/stats.h"
#include "unwind/symbols.h"

#include <time.h>

#define ADDRESSES 4096 /* places at first; a power of two */
#define WORDS 4096

typedef struct Pprof {
    struct Address {
        uintptr_t pc;
        uint64_t number; /* 0: the place is free */
    } * address;         /* open addressing */
    uint64_t places, addresses;
    bool failed; /* no memory */
    const char *words[WORDS];
    uint32_t nwords;
} Pprof;

static struct Address *address_at(Pprof *w, uintptr_t pc) {
    uint64_t i = (pc * 0x9E3779B97F4A7C15ULL >> 32) & (w->places - 1);
    while (w->address[i].number && w->address[i].pc != pc) i = (i + 1) & (w->places - 1);
    return &w->address[i];
}

static bool addresses_grow(Pprof *w) {
    uint64_t places = w->places ? w->places * 2 : ADDRESSES;
    Pprof more = {.places = places};
    more.address = scratch_get(places * sizeof *more.address);
    if (more.address == NULL) return false;
    for (uint64_t i = 0; i < w->places; i++)
        if (w->address[i].number) *address_at(&more, w->address[i].pc) = w->address[i];
    scratch_free(w->address);
    w->address = more.address;
    w->places = places;
    return true;
}

/* The number of pc's location; 0: no memory. */
static uint64_t pprof_location(Pprof *w, uintptr_t pc) {
    if (w->addresses * 2 >= w->places && !addresses_grow(w)) {
        w->failed = true;
        return 0;
    }
    struct Address *a = address_at(w, pc);
    if (a->number == 0) *a = (struct Address){pc, ++w->addresses};
    return a->number;
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
    if (s->depth == 0) pb_number(&m, 1, pprof_location(w, 0));
    pb_number(&m, 2, profile_count(k, s));
    if (k->value) pb_number(&m, 2, (uint64_t)load_rlx(&s->value));
    pb_number(&l, 1, pprof_string(w, k->label));
    pb_number(&l, 2, pprof_string(w, text));
    pb_bytes(&m, 3, l.buf, l.used);
    pb_bytes(o, 2, m.buf, m.used);
}

/* Strings of a protocol buffer are UTF-8; names of goroutines, functions and files need not be. */
static void pb_text(Out *o, int field, const char *s) {
    Out text = OUT_GROWING;
    out_plain(&text, s);
    if (text.failed) o->failed = text.failed;
    else pb_bytes(o, field, text.buf ? text.buf : "", text.used);
    scratch_free(text.buf);
}

static void strings(Out *o, Pprof *w) {
    for (uint32_t i = 0; i < w->nwords; i++) pb_text(o, 6, w->words[i]);
    for (uint64_t i = 0; i < w->places; i++) {
        uintptr_t pc = w->address[i].pc;
        if (w->address[i].number == 0) continue;
        char text[32] = "(lost)";
        Named n = symbol_of(pc);
        if (pc) print_buf(text, sizeof text, "0x%lx", pc);
        const char *name = n.name ? n.name : text, *file = n.module ? module_name(n.module) : "?";
        if (pc && frame_is_ours(pc)) file = "gort";
        pb_text(o, 6, name);
        pb_text(o, 6, file);
    }
}

static void locations(Out *o, Pprof *w) {
    uint64_t string = w->nwords;
    for (uint64_t i = 0; i < w->places; i++) {
        uint64_t number = w->address[i].number;
        if (number == 0) continue;
        char place[64], line[16], function[64];
        Out p = OUT(-1, place), l = OUT(-1, line), f = OUT(-1, function);
        pb_number(&l, 1, number); /* the function */
        pb_number(&p, 1, number);
        pb_number(&p, 3, w->address[i].pc);
        pb_bytes(&p, 4, l.buf, l.used);
        pb_bytes(o, 4, p.buf, p.used);
        pb_number(&f, 1, number);
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
    Pprof *w = scratch_get(sizeof *w);
    if (w == NULL) {
        o->failed = -ENOMEM;
        return;
    }
    pprof_string(w, "");
    value_type(o, w, 1, k->count, "count");
    if (k->value) value_type(o, w, 1, k->value, "nanoseconds");
    Sample lost;
    for (uint32_t i = 0; i < f->places; i++)
        if (load_acq(&f->at[i].ready)) pprof_sample(o, w, k, &f->at[i]);
    if (profile_lost(f, &lost)) pprof_sample(o, w, k, &lost);
    if (w->failed) o->failed = -ENOMEM;
    pb_number(o, 9, (uint64_t)(wall.tv_sec * GORT_SEC + wall.tv_nsec));
    if (duration) pb_number(o, 10, (uint64_t)duration);
    if (k->period_of_value) value_type(o, w, 11, k->value, "nanoseconds");
    else value_type(o, w, 11, k->count, "count");
    pb_number(o, 12, (uint64_t)k->period);
    locations(o, w); /* the list of words is complete */
    strings(o, w);
    scratch_free(w->address);
    scratch_free(w);
}

typedef struct Census {
    Profile *profile;
    bool own;
    bool creators; /* a stack of two frames: the goroutine's function, the place that started it */
} Census;

static void count_goroutine(G *gp, void *arg) {
    const Census *c = arg;
    uint32_t status;
    if (!g_exists(gp, &status) || (!c->own && page_own(gp))) return;
    Sample s = {.status = (uint8_t)status, .reason = status == G_WAITING ? gp->reason : 0};
    s.entry = g_entry(gp);
    g_name(gp, s.name);
    if (!c->creators) s.depth = (uint8_t)backtrace_g(gp, NULL, s.pcs, PROFILE_DEPTH);
    /* without a stack it has not run, or is not readable */
    if (s.depth == 0) s.pcs[s.depth++] = s.entry + 1;
    if (c->creators && gp->id > 1) s.pcs[s.depth++] = gp->created_at;
    profile_add(c->profile, &s, 1, 0);
}

int profile_goroutines(Profile *f, bool creators, bool own) {
    static const ProfileKind goroutines = {.count = "goroutine", .label = "status", .period = 1};
    f->kind = &goroutines;
    f->grows = true;
    int e = profile_begin(f);
    if (e == 0) each_g(count_goroutine, &(Census){f, own, creators});
    return e;
}
