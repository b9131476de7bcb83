/*
 * A profile for people: folded stacks, a line each, which flame graph tools and speedscope read,
 * and the flame graph itself, as SVG without scripts or outside resources.
 *
 *     worker;run;parse;scan 42
 *
 * The outermost name is the goroutine's. Frames of the library are left out, except the call that
 * the program made, unless all are asked for. For the graph the stacks are merged into a tree by
 * name; a node is as wide as its share, and its children stand on it, the narrow ones as one box.
 * Takes memory (scratch.c): goroutines only.
 */
#include "inspect/profile.h"
#include "inspect/scratch.h"
#include "debug/frames.h"
#include "unwind/symbols.h"

#define WIDTH 12000 /* tenths of a pixel */
#define ROW 17
#define NARROW 3 /* tenths of a pixel: narrower boxes are left out */

/* Of a stack in the library only, the call that a program's frame, which tail calls have removed,
 * made: the outermost one that is public. -1: the program has a frame, or there is no such call. */
static int frame_alone(const Sample *s) {
    int public = -1;
    for (int i = 0; i < s->depth; i++) {
        if (!frame_is_ours(s->pcs[i] - 1)) return -1;
        const char *name = symbol_of(s->pcs[i] - 1).name;
        if (name && begins_with(name, "gort_")) public = i;
    }
    return public;
}

/* Is frame i one of the library's, and not the call that the program made? */
static bool frame_left_out(const Sample *s, int i, bool all) {
    if (all || !frame_is_ours(s->pcs[i] - 1)) return false;
    if (i + 1 < s->depth && !frame_is_ours(s->pcs[i + 1] - 1)) return false;
    return frame_alone(s) != i;
}

static const char *frame_name(const Sample *s, int i) {
    Named n = symbol_of(i == 0 ? s->pcs[i] : s->pcs[i] - 1);
    return n.name ? n.name : n.module ? module_name(n.module) : "?";
}

static uint64_t flame_weight(const ProfileKind *k, const Sample *s) {
    return k->value ? (uint64_t)load_rlx(&s->value) : profile_count(k, s);
}

static void out_folded(Out *o, const char *s) {
    for (size_t n; *s; s += n) {
        n = utf8_bytes(s);
        if (*s == ';') out_str(o, ":");
        else if (n == 0 || (unsigned char)*s <= ' ') out_str(o, "_"), n = 1;
        else out_bytes(o, s, n);
    }
}

static void out_folded_function(Out *o, const char *name) {
    char room[SYMBOL_SHOWN];
    out_folded(o, symbol_shown(name, room));
}

void folded_write(Out *o, const Profile *f, bool all) {
    Sample lost;
    bool some = profile_lost(f, &lost);
    for (uint32_t n = 0; n < f->places + some; n++) {
        const Sample *s = n < f->places ? &f->at[n] : &lost;
        if (s != &lost && !load_acq(&s->ready)) continue;
        out_folded_function(o, profile_goroutine(s));
        for (int i = s->depth; i-- > 0;) {
            if (frame_left_out(s, i, all)) continue;
            out_str(o, ";");
            out_folded_function(o, frame_name(s, i));
        }
        out_fmt(o, " %lu\n",
                f->kind->period_of_value ? load_rlx(&s->count) : flame_weight(f->kind, s));
    }
}

typedef struct Node {
    const char *name;
    uint64_t weight;
    uint32_t parent, child, next; /* 0: none */
    uint32_t hash, chain;         /* the next node of this hash's bucket; 0: none */
} Node;

/* A node has a child for each goroutine's name: with 100,000 of them no list can be searched. */
typedef struct Tree {
    Node *at;         /* [0] is the root: everything */
    uint32_t *bucket; /* as many as places in `at`: the first node of each; 0: none */
    uint32_t count, size;
    uint32_t depth;
    bool failed, all;
} Tree;

static uint32_t node_hash(uint32_t parent, const char *name) {
    uint32_t h = 2166136261u ^ parent * 0x9E3779B1u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h ^ h >> 15;
}

static void node_enter(Tree *t, uint32_t n) {
    uint32_t *first = &t->bucket[t->at[n].hash & (t->size - 1)];
    t->at[n].chain = *first;
    *first = n;
}

static bool tree_grow(Tree *t) {
    uint32_t size = t->size ? t->size * 2 : 1024;
    uint32_t *bucket = scratch_get(size * sizeof *bucket);
    Node *at = bucket ? scratch_grow(t->at, size * sizeof *at) : NULL;
    if (at) t->at = at;
    if (at == NULL) {
        scratch_free(bucket);
        return false;
    }
    scratch_free(t->bucket);
    t->bucket = bucket;
    t->size = size;
    for (uint32_t i = 1; i < t->count; i++) node_enter(t, i);
    return true;
}

/* 0, with `failed` set: no memory. */
static uint32_t new_node(Tree *t, uint32_t parent, const char *name) {
    if (t->count == t->size && !tree_grow(t)) {
        t->failed = true;
        return 0;
    }
    t->at[t->count] = (Node){.name = name, .parent = parent, .hash = node_hash(parent, name)};
    return t->count++;
}

static uint32_t child_of(Tree *t, uint32_t node, const char *name) {
    uint32_t hash = node_hash(node, name);
    for (uint32_t c = t->bucket[hash & (t->size - 1)]; c; c = t->at[c].chain)
        if (t->at[c].hash == hash && t->at[c].parent == node && strcmp(t->at[c].name, name) == 0)
            return c;
    uint32_t c = new_node(t, node, name);
    if (c == 0) return 0;
    node_enter(t, c);
    t->at[c].next = t->at[node].child;
    t->at[node].child = c;
    return c;
}

static void plant(Tree *t, const ProfileKind *k, const Sample *s) {
    uint64_t w = flame_weight(k, s);
    uint32_t node = 0, depth = 1;
    t->at[0].weight += w;
    for (int i = s->depth; i >= 0 && !t->failed; i--) {
        if (i < s->depth && frame_left_out(s, i, t->all)) continue;
        depth++;
        node = child_of(t, node, i == s->depth ? profile_goroutine(s) : frame_name(s, i));
        if (node) t->at[node].weight += w;
    }
    if (depth > t->depth) t->depth = depth;
}

static void out_xml(Out *o, const char *s, size_t most) {
    for (size_t n; *s && most > 0; s += n, most--) {
        n = utf8_bytes(s);
        bool none = n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (s[2] & 0x3e) == 0x3e;
        if (n == 0 || none) out_str(o, "?"), n += n == 0; /* XML has no U+FFFE and U+FFFF */
        else if (*s == '<') out_str(o, "&lt;");
        else if (*s == '>') out_str(o, "&gt;");
        else if (*s == '&') out_str(o, "&amp;");
        else if (*s == '"') out_str(o, "&quot;");
        else out_bytes(o, (unsigned char)*s < ' ' ? "?" : s, n);
    }
}

static void out_tenths(Out *o, const char *name, uint64_t v) {
    out_fmt(o, " %s=\"%lu.%lu\"", name, v / 10, v % 10);
}

/* A warm colour; a name always has the same. */
static void out_colour(Out *o, const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    out_fmt(o, " fill=\"rgb(%u,%u,%u)\"", 205 + (h & 31), 80 + (h >> 8) % 130, 30 + (h >> 16) % 40);
}

/* The part's share of the width. Years of waits in ns, times a width, do not fit into 64 bits. */
static uint64_t width_of(uint64_t w, uint64_t part, uint64_t all) {
    return all ? (uint64_t)((double)w * ((double)part / (double)all)) : 0;
}

NOINLINE static void draw_box(Out *o, const Tree *t, const char *symbol, uint64_t weight,
                              uint64_t x, uint64_t w, uint32_t level) {
    uint32_t y = (t->depth - level) * ROW + ROW;
    uint64_t share = width_of(1000, weight, t->at[0].weight);
    char room[SYMBOL_SHOWN];
    const char *name = symbol_shown(symbol, room);
    out_str(o, "<g><title>");
    out_xml(o, name, 200);
    out_fmt(o, " %lu.%lu%%</title><rect", share / 10, share % 10);
    out_tenths(o, "x", x);
    out_tenths(o, "width", w);
    out_fmt(o, " y=\"%u\" height=\"%d\"", y, ROW - 1);
    out_colour(o, name);
    out_str(o, "/>");
    if (w > 300) {
        out_str(o, "<text");
        out_tenths(o, "x", x + 30);
        out_fmt(o, " y=\"%u\">", y + ROW - 5);
        out_xml(o, name, w / 72);
        out_str(o, "</text>");
    }
    out_str(o, "</g>\n");
}

/* Of all children that are too narrow, one box. */
static void draw_others(Out *o, const Tree *t, uint32_t n, uint64_t weight, uint64_t x, uint64_t w,
                        uint32_t level) {
    char name[32];
    print_buf(name, sizeof name, "(%u others)", n);
    if (w >= NARROW) draw_box(o, t, name, weight, x, w, level);
}

static void draw_tree(Out *o, Tree *t, uint32_t node, uint64_t x, uint64_t w, uint32_t level) {
    uint64_t whole = t->at[node].weight, rest = 0;
    uint32_t others = 0;
    draw_box(o, t, t->at[node].name, whole, x, w, level);
    for (uint32_t c = t->at[node].child; c; c = t->at[c].next) {
        uint64_t part = width_of(w, t->at[c].weight, whole);
        if (part >= NARROW) draw_tree(o, t, c, x, part, level + 1), x += part;
        else rest += t->at[c].weight, others++;
    }
    draw_others(o, t, others, rest, x, width_of(w, rest, whole), level + 1);
}

void flame_write(Out *o, const Profile *f, bool all) {
    const ProfileKind *k = f->kind;
    Tree t = {.depth = 2, .all = all};
    new_node(&t, 0, "all");
    Sample lost;
    for (uint32_t n = 0; n < f->places && !t.failed; n++)
        if (load_acq(&f->at[n].ready)) plant(&t, k, &f->at[n]);
    if (profile_lost(f, &lost) && !t.failed) plant(&t, k, &lost);
    if (t.failed) {
        o->failed = -ENOMEM;
    } else {
        out_fmt(o,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
                "font-family=\"monospace\" font-size=\"11\">\n<text x=\"4\" y=\"13\">%s</text>\n",
                WIDTH / 10, (t.depth + 3) * ROW, k->value ? k->value : k->count);
        draw_tree(o, &t, 0, 0, WIDTH, 0);
        out_str(o, "</svg>\n");
    }
    scratch_free(t.at);
    scratch_free(t.bucket);
}
