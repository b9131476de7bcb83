/*
 * jsontrace_check FILE: a trace in Chrome's JSON holds together.
 *
 * The slices of a track (X, B and E) nest or are disjoint, to the nanosecond; every arrow begins in
 * a slice and ends only where it has begun; the regions of a goroutine nest, and each that begins
 * ends. An event is a line, its keys in a fixed order.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Slice {
    uint64_t track, from, to;
    size_t line;
} Slice;

typedef struct List {
    void *at;
    size_t n, cap;
} List;

static List slices, arrows, begun, regions;

static void fail(size_t line, const char *why) {
    fprintf(stderr, "line %zu: %s\n", line, why);
    exit(1);
}

static void *add(List *l, size_t size) {
    if (l->n == l->cap) l->at = realloc(l->at, (l->cap = l->cap ? l->cap * 2 : 1024) * size);
    if (l->at == NULL) exit(2);
    return (char *)l->at + l->n++ * size;
}

static const char *value(const char *line, const char *key) {
    const char *s = strstr(line, key);
    return s ? s + strlen(key) : NULL;
}

static uint64_t number(const char *line, const char *key) {
    const char *s = value(line, key);
    return s ? strtoull(s, NULL, 10) : 0;
}

/* Microseconds with three decimals, as ns. */
static uint64_t ns(const char *line, const char *key) {
    char *end;
    const char *s = value(line, key);
    if (s == NULL) return 0;
    uint64_t us = strtoull(s, &end, 10);
    return us * 1000 + (*end == '.' ? strtoull(end + 1, NULL, 10) : 0);
}

typedef struct Open { /* a B without its E, a region without its end */
    uint64_t of, from;
    char name[64];
    size_t line;
} Open;

static void opens(List *l, uint64_t of, const char *line, size_t n) {
    const char *name = value(line, "\"name\":\"");
    Open *o = add(l, sizeof *o);
    *o = (Open){.of = of, .from = ns(line, "\"ts\":"), .line = n};
    snprintf(o->name, sizeof o->name, "%.*s", name ? (int)strcspn(name, "\"") : 0,
             name ? name : "");
}

/* The innermost of the same, which must have that name. */
static Open closes(List *l, uint64_t of, const char *line, size_t n) {
    Open *all = l->at, o;
    const char *name = value(line, "\"name\":\"");
    size_t i = l->n;
    while (i > 0 && all[i - 1].of != of) i--;
    if (i == 0) fail(n, "an end without a beginning");
    o = all[i - 1];
    if (name == NULL || strncmp(name, o.name, strlen(o.name)) != 0) fail(n, "the end of another");
    memmove(&all[i - 1], &all[i], (l->n-- - i) * sizeof o);
    return o;
}

static void slice(uint64_t track, uint64_t from, uint64_t to, size_t line) {
    *(Slice *)add(&slices, sizeof(Slice)) = (Slice){track, from, to, line};
}

static void event(const char *line, size_t n) {
    static List scheduler;
    const char *ph = value(line, "{\"ph\":\"");
    uint64_t track = number(line, "\"pid\":") << 32 | number(line, "\"tid\":");
    uint64_t ts = ns(line, "\"ts\":"), id = number(line, "\"id\":");
    switch (ph ? *ph : 0) {
    case 'X': slice(track, ts, ts + ns(line, "\"dur\":"), n); break;
    case 'B': opens(&scheduler, track, line, n); break;
    case 'E': slice(track, closes(&scheduler, track, line, n).from, ts, n); break;
    case 'b': opens(&regions, id, line, n); break;
    case 'e': closes(&regions, id, line, n); break;
    case 's':
        *(Slice *)add(&arrows, sizeof(Slice)) = (Slice){track, ts, ts, n};
        *(uint64_t *)add(&begun, sizeof(uint64_t)) = id;
        break;
    case 'f': {
        size_t i = begun.n;
        while (i > 0 && ((uint64_t *)begun.at)[i - 1] != id) i--;
        if (i == 0) fail(n, "an arrow ends that has not begun");
        break;
    }
    default: break;
    }
    if (scheduler.n > 1 << 16) fail(n, "too many slices are open");
}

static int by_place(const void *a, const void *b) {
    const Slice *x = a, *y = b;
    if (x->track != y->track) return x->track < y->track ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to > y->to ? -1 : x->to < y->to;
}

/* Walks each track in the order of time, with the slices that are open at that time. */
static void check_tracks(void) {
    Slice *s = slices.at, *a = arrows.at;
    uint64_t to[64];
    size_t depth = 0, next = 0;
    qsort(s, slices.n, sizeof *s, by_place);
    qsort(a, arrows.n, sizeof *a, by_place);
    for (size_t i = 0; i < slices.n; i++) {
        if (i > 0 && s[i].track != s[i - 1].track) depth = 0;
        while (depth > 0 && to[depth - 1] <= s[i].from) depth--;
        if (depth > 0 && s[i].to > to[depth - 1]) fail(s[i].line, "overlaps the slice before");
        if (depth == 64) fail(s[i].line, "too deep");
        to[depth++] = s[i].to;
        for (; next < arrows.n && (a[next].track < s[i].track ||
                                   (a[next].track == s[i].track && a[next].from < s[i].from));
             next++)
            fail(a[next].line, "an arrow begins outside all slices");
        while (next < arrows.n && a[next].track == s[i].track && a[next].from <= to[0]) next++;
    }
    if (next < arrows.n) fail(a[next].line, "an arrow begins outside all slices");
}

int main(int argc, char **argv) {
    static char line[1 << 16];
    size_t n = 0;
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (f == NULL) return 2;
    while (fgets(line, sizeof line, f)) event(line, ++n);
    fclose(f);
    if (strstr(line, "}}") == NULL) fail(n, "the file is cut");
    if (regions.n) fail(((Open *)regions.at)->line, "a region without an end");
    check_tracks();
    printf("%zu slices, %zu arrows\n", slices.n, arrows.n);
    return slices.n == 0;
}
