/*
 * Profiles in pprof's format (a protocol buffer; `go tool pprof`, speedscope, Grafana read it).
 *
 * A profile here is stacks with a count. Goroutines with the same stack and status become one
 * sample; functions come from our own symbol reader, so the reader needs no binary. The message
 * (profile.proto): sample_type 1, sample 2, mapping 3, location 4, function 5, string_table 6,
 * time_nanos 9, period_type 11, period 12; every nested message is preceded by its length. Strings
 * and functions are referred to by number: a function's number is its place in the table of
 * addresses met, and each address is a location of its own.
 */
#include "dump.h"
#include "g.h"
#include "page.h"
#include "symbols.h"

#include <stdlib.h>
#include <time.h>

#define DEPTH 48
#define STACKS 4096  /* different stacks; a power of two */
#define ADDRESSES 16384

typedef struct Stk {
    uint64_t hash, count;
    int depth;
    uint8_t status, reason;
    uintptr_t pcs[DEPTH];
} Stk;

typedef struct Profile {
    Stk at[STACKS];
    uint32_t used;
    uint64_t rest;                 /* goroutines whose stack found no place */
    uintptr_t address[ADDRESSES];  /* open addressing; the place + 1 is the location's number */
    uint32_t addresses;
} Profile;

/* ---- collecting ------------------------------------------------------------------------------ */

static void collect(G *gp, void *arg) {
    Profile *f = arg;
    Stk s = {.hash = 14695981039346656037ULL, .count = 1};
    uint32_t status = load_acq(&gp->status);
    if (load_rlx(&gp->id) == 0 || status == G_IDLE || status == G_DEAD) return;
    s.status = (uint8_t)status;
    s.reason = status == G_WAITING ? gp->reason : 0;
    s.depth = backtrace_g(gp, NULL, s.pcs, DEPTH);
    if (s.depth == 0) s.pcs[s.depth++] = g_entry(gp) + 1; /* has not run, or cannot be looked at */
    for (int i = 0; i < s.depth; i++) s.hash = (s.hash ^ s.pcs[i]) * 0x100000001B3ULL;
    s.hash = (s.hash ^ (uint64_t)(s.status << 8 | s.reason)) * 0x9E3779B97F4A7C15ULL | 1;
    uint32_t i = (uint32_t)(s.hash >> 40) & (STACKS - 1);
    while (f->at[i].hash && f->at[i].hash != s.hash) i = (i + 1) & (STACKS - 1);
    if (f->at[i].hash) f->at[i].count++;
    else if (f->used < STACKS / 2) f->at[i] = s, f->used++;
    else f->rest++;
}

/* The number of a location; 0: the table is full. */
static uint64_t location(Profile *f, uintptr_t pc) {
    uint32_t i = (uint32_t)(pc * 0x9E3779B97F4A7C15ULL >> 40) & (ADDRESSES - 1);
    while (f->address[i] && f->address[i] != pc) i = (i + 1) & (ADDRESSES - 1);
    if (f->address[i] == 0) {
        if (f->addresses == ADDRESSES / 2) return 0;
        f->addresses++;
        f->address[i] = pc;
    }
    return i + 1;
}

/* ---- protocol buffers ------------------------------------------------------------------------ */

static void varint(Out *o, uint64_t v) {
    do {
        char byte = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        out_bytes(o, &byte, 1);
        v >>= 7;
    } while (v);
}
static void number(Out *o, int field, uint64_t v) {
    varint(o, (uint64_t)field << 3);
    varint(o, v);
}
static void bytes(Out *o, int field, const char *s, size_t n) {
    varint(o, (uint64_t)field << 3 | 2);
    varint(o, n);
    out_bytes(o, s, n);
}

/* Strings by number: 0 is "", then the fixed ones, then two for each location (function, file). */
static const char *const fixed[] = {"", "goroutine", "count", "status"};
enum { S_GOROUTINE = 1, S_COUNT, S_STATUS, S_REASONS, S_STATUSES = S_REASONS + WAIT_REASONS,
       S_LOCATIONS = S_STATUSES + 8 };

static void value_type(Out *o, int field) {
    char buf[16];
    Out m = OUT(-1, buf);
    number(&m, 1, S_GOROUTINE);
    number(&m, 2, S_COUNT);
    bytes(o, field, m.buf, m.used);
}

static void sample(Out *o, Profile *f, const Stk *s) {
    char buf[DEPTH * 6 + 64], label[16];
    Out m = OUT(-1, buf), l = OUT(-1, label);
    for (int i = 0; i < s->depth; i++) {
        uint64_t n = location(f, i == 0 ? s->pcs[i] : s->pcs[i] - 1);
        if (n) number(&m, 1, n);
    }
    number(&m, 2, s->count);
    number(&l, 1, S_STATUS);
    number(&l, 2, s->status == G_WAITING ? S_REASONS + s->reason : S_STATUSES + s->status);
    bytes(&m, 3, l.buf, l.used);
    bytes(o, 2, m.buf, m.used);
}

static void location_message(Out *o, uint64_t id, uintptr_t pc) {
    char buf[64], line[16];
    Out m = OUT(-1, buf), l = OUT(-1, line);
    number(&l, 1, id);      /* function: the same number */
    number(&m, 1, id);
    number(&m, 3, pc);
    bytes(&m, 4, l.buf, l.used);
    bytes(o, 4, m.buf, m.used);
}

static void function_message(Out *o, uint64_t id, uint64_t name, uint64_t file) {
    char buf[64];
    Out m = OUT(-1, buf);
    number(&m, 1, id);
    number(&m, 2, name);
    number(&m, 3, name);
    number(&m, 4, file);
    bytes(o, 5, m.buf, m.used);
}

static void strings(Out *o, Profile *f) {
    for (size_t i = 0; i < count_of(fixed); i++) bytes(o, 6, fixed[i], strlen(fixed[i]));
    for (int i = 0; i < WAIT_REASONS; i++) bytes(o, 6, reason_text(i), strlen(reason_text(i)));
    for (uint32_t i = 0; i < 8; i++) bytes(o, 6, status_text(i, 0), strlen(status_text(i, 0)));
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        if (f->address[i] == 0) continue;
        char text[32];
        Named n = symbol_of(f->address[i]);
        print_buf(text, sizeof text, "0x%lx", (unsigned long)f->address[i]);
        const char *name = n.name ? n.name : text, *file = n.module ? module_name(n.module) : "?";
        bytes(o, 6, name, strlen(name));
        bytes(o, 6, file, strlen(file));
    }
}

static int64_t wall_clock(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

void pprof_goroutines(Out *o) {
    Profile *f = calloc(1, sizeof *f);
    if (f == NULL) {
        o->failed = true;
        return;
    }
    each_g(collect, f);
    value_type(o, 1);
    for (uint32_t i = 0; i < STACKS; i++)
        if (f->at[i].hash) sample(o, f, &f->at[i]);
    uint64_t string = S_LOCATIONS;
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        if (f->address[i] == 0) continue;
        location_message(o, i + 1, f->address[i]);
        function_message(o, i + 1, string, string + 1);
        string += 2;
    }
    strings(o, f);
    number(o, 9, (uint64_t)wall_clock());
    value_type(o, 11);
    number(o, 12, 1);
    free(f);
}
