/*
 * Reads a trace as Perfetto's packets, as src/inspect/trace_perfetto.c writes it: the groups are
 * unpacked (zlib, with fixed codes only), interned texts looked up, and the events handed out in
 * their order. An event's texts are valid until its function returns. For gort-trace and the tests.
 */
#ifndef PFTRACE_H
#define PFTRACE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PF_BEGIN = 1, PF_END, PF_INSTANT };
enum { PF_CATEGORY, PF_NAME, PF_KEY, PF_TEXT, PF_KINDS }; /* kinds of interned texts */

typedef struct PfEvent {
    unsigned type;
    uint64_t track, ns;
    const char *name, *category; /* "" where there is none */
    uint64_t flow, flow_end;     /* 0: none */
    /* annotations: */
    uint64_t g, by, about;
    const char *end;
    struct {
        const char *key;
        uint64_t v;
    } sum[32]; /* all numbers */
    unsigned sums;
} PfEvent;

typedef struct PfTrace {
    void (*event)(const PfEvent *e);
    const char *problem; /* why it is no trace of gort's; NULL: none */
    uint64_t ns;
    char **text[PF_KINDS];
    uint64_t texts[PF_KINDS];
    uint64_t packets, groups;
} PfTrace;

typedef struct PfBytes {
    const uint8_t *at, *end;
} PfBytes;

/* ---- protobuf -------------------------------------------------------------------------------- */

static int pf_varint(PfBytes *b, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        uint8_t c = *b->at++;
        *v |= (uint64_t)(c & 127) << shift;
        if (c < 128) return 1;
    }
    return 0;
}

/* The next field: its number, and its value or its bytes. 0: there is none; -1: broken. */
static int pf_field(PfBytes *b, unsigned *field, uint64_t *v, PfBytes *in) {
    uint64_t tag;
    if (b->at == b->end) return 0;
    if (!pf_varint(b, &tag)) return -1;
    *field = (unsigned)(tag >> 3);
    *v = 0;
    in->at = in->end = b->at;
    switch (tag & 7) {
    case 0: return pf_varint(b, v) ? 1 : -1;
    case 1:
        if (b->end - b->at < 8) return -1;
        for (int i = 7; i >= 0; i--) *v = *v << 8 | b->at[i];
        b->at += 8;
        return 1;
    case 2:
        if (!pf_varint(b, v) || *v > (uint64_t)(b->end - b->at)) return -1;
        in->at = b->at;
        b->at = in->end = in->at + *v;
        return 1;
    default: return -1;
    }
}

/* ---- zlib ------------------------------------------------------------------------------------ */

typedef struct PfBits {
    PfBytes from;
    uint32_t bits;
    unsigned n;
} PfBits;

static unsigned pf_bit(PfBits *b) {
    if (b->n == 0) {
        b->bits = b->from.at < b->from.end ? *b->from.at++ : 0;
        b->n = 8;
    }
    unsigned v = b->bits & 1;
    b->bits >>= 1;
    b->n--;
    return v;
}
static unsigned pf_bits(PfBits *b, unsigned n) {
    unsigned v = 0;
    for (unsigned i = 0; i < n; i++) v |= pf_bit(b) << i;
    return v;
}
static unsigned pf_code(PfBits *b, unsigned n) { /* codes begin with their highest bit */
    unsigned v = 0;
    while (n-- > 0) v = v << 1 | pf_bit(b);
    return v;
}

static unsigned pf_symbol(PfBits *b) {
    unsigned v = pf_code(b, 7);
    if (v < 24) return 256 + v;
    v = v << 1 | pf_bit(b);
    if (v < 192) return v - 0x30;
    if (v < 200) return 280 + v - 192;
    return 144 + ((v << 1 | pf_bit(b)) - 0x190);
}

/* The value that a code and its extra bits stand for: RFC 1951, 3.2.5. */
static unsigned pf_value(PfBits *b, unsigned code, unsigned step) {
    if (code < 2 * step) return code;
    unsigned extra = code / step - 1;
    return ((step + code % step) << extra) + pf_bits(b, extra);
}

/* The unpacked bytes, to be freed; NULL: it is none of ours. */
static uint8_t *pf_inflate(PfBytes from, size_t *n) {
    size_t most = 1 << 20, used = 0;
    uint8_t *to = malloc(most);
    PfBits b = {.from = from};
    if (to == NULL || pf_bits(&b, 16) != 0x0178 || pf_bits(&b, 3) != 3) goto bad;
    for (unsigned s; (s = pf_symbol(&b)) != 256;) {
        if (used + 258 > most || s > 285 || b.from.at >= from.end) goto bad;
        if (s < 256) {
            to[used++] = (uint8_t)s;
            continue;
        }
        unsigned length = s == 285 ? 258 : 3 + pf_value(&b, s - 257, 4);
        unsigned distance = 1 + pf_value(&b, pf_code(&b, 5), 2);
        if (distance > used) goto bad;
        for (; length > 0; length--, used++) to[used] = to[used - distance];
    }
    uint32_t a = 1, c = 0, sum = 0;
    for (size_t i = 0; i < used; i++) a = (a + to[i]) % 65521, c = (c + a) % 65521;
    b.n = 0;
    for (int i = 0; i < 4; i++) sum = sum << 8 | pf_bits(&b, 8);
    if (sum != (c << 16 | a)) goto bad;
    *n = used;
    return to;
bad:
    free(to);
    return NULL;
}

/* ---- packets --------------------------------------------------------------------------------- */

static const char *pf_text(const PfTrace *t, unsigned kind, uint64_t iid) {
    return iid < t->texts[kind] && t->text[kind][iid] ? t->text[kind][iid] : "";
}

static void pf_interned(PfTrace *t, unsigned kind, PfBytes b) {
    unsigned field;
    uint64_t v, iid = 0;
    PfBytes in, text = {0};
    while (pf_field(&b, &field, &v, &in) > 0)
        if (field == 1) iid = v;
        else if (field == 2) text = in;
    if (iid == 0 || iid > 1 << 24) return;
    if (iid >= t->texts[kind]) {
        uint64_t n = iid * 2 + 64;
        char **more = realloc(t->text[kind], n * sizeof *more);
        if (more == NULL) return;
        memset(more + t->texts[kind], 0, (n - t->texts[kind]) * sizeof *more);
        t->text[kind] = more;
        t->texts[kind] = n;
    }
    free(t->text[kind][iid]);
    t->text[kind][iid] = strndup((const char *)text.at, (size_t)(text.end - text.at));
}

static void pf_interned_data(PfTrace *t, PfBytes b) {
    unsigned field;
    uint64_t v;
    PfBytes in;
    while (pf_field(&b, &field, &v, &in) > 0)
        if (field >= 1 && field <= 3) pf_interned(t, field - 1, in);
        else if (field == 29) pf_interned(t, PF_TEXT, in);
}

static void pf_annotation(const PfTrace *t, PfEvent *e, PfBytes b) {
    unsigned field;
    uint64_t v, number = 0;
    PfBytes in;
    const char *key = "", *text = NULL;
    while (pf_field(&b, &field, &v, &in) > 0)
        if (field == 1) key = pf_text(t, PF_KEY, v);
        else if (field == 3) number = v;
        else if (field == 17) text = pf_text(t, PF_TEXT, v);
    if (text) {
        if (strcmp(key, "end") == 0) e->end = text;
        return;
    }
    if (strcmp(key, "g") == 0) e->g = number;
    if (strcmp(key, "by") == 0) e->by = number;
    if (strcmp(key, "about") == 0) e->about = number;
    if (e->sums == 32) return;
    e->sum[e->sums].key = key;
    e->sum[e->sums++].v = number;
}

static void pf_event(PfTrace *t, PfBytes b) {
    PfEvent e = {.ns = t->ns, .name = "", .category = "", .end = ""};
    unsigned field;
    uint64_t v;
    PfBytes in;
    while (pf_field(&b, &field, &v, &in) > 0)
        if (field == 3) e.category = pf_text(t, PF_CATEGORY, v);
        else if (field == 4) pf_annotation(t, &e, in);
        else if (field == 9) e.type = (unsigned)v;
        else if (field == 10) e.name = pf_text(t, PF_NAME, v);
        else if (field == 11) e.track = v;
        else if (field == 47) e.flow = v;
        else if (field == 48) e.flow_end = v;
    t->event(&e);
}

static void pf_packets(PfTrace *t, PfBytes b, int inside);

static void pf_group(PfTrace *t, PfBytes b, int inside) {
    size_t n = 0;
    uint8_t *raw = inside ? NULL : pf_inflate(b, &n);
    if (raw == NULL) t->problem = "a group of packets that gort has not written";
    else pf_packets(t, (PfBytes){raw, raw + n}, 1);
    free(raw);
    t->groups++;
}

/* Interned texts come into force before the event of the same packet. */
static void pf_packet(PfTrace *t, PfBytes b, int inside) {
    PfBytes in, event = {0};
    unsigned field;
    uint64_t v;
    int r;
    while ((r = pf_field(&b, &field, &v, &in)) > 0)
        if (field == 8) t->ns += v;
        else if (field == 11) event = in;
        else if (field == 12) pf_interned_data(t, in);
        else if (field == 50) pf_group(t, in, inside);
    if (r < 0) t->problem = "a broken packet";
    if (event.at) pf_event(t, event);
    t->packets++;
}

static void pf_packets(PfTrace *t, PfBytes b, int inside) {
    PfBytes in;
    unsigned field;
    uint64_t v;
    int r = 0;
    while (t->problem == NULL && (r = pf_field(&b, &field, &v, &in)) > 0)
        if (field == 1) pf_packet(t, in, inside);
    if (r < 0) t->problem = "the file ends in the middle of a packet";
}

static void pf_forget_texts(PfTrace *t) {
    for (unsigned kind = 0; kind < PF_KINDS; kind++) {
        for (uint64_t iid = 0; iid < t->texts[kind]; iid++) free(t->text[kind][iid]);
        free(t->text[kind]);
        t->text[kind] = NULL;
        t->texts[kind] = 0;
    }
}

/* All of a file that begins with the n bytes read already. t->problem says what failed. */
static void pf_read(PfTrace *t, FILE *f, const char *first, size_t n) {
    size_t cap = 1 << 20, used = n;
    uint8_t *all = malloc(cap);
    if (all) memcpy(all, first, n);
    while (all && (n = fread(all + used, 1, cap - used, f)) > 0)
        if ((used += n) == cap) {
            uint8_t *more = realloc(all, cap *= 2);
            if (more == NULL) free(all);
            all = more;
        }
    if (all == NULL) t->problem = "no memory";
    else pf_packets(t, (PfBytes){all, all + used}, 0);
    free(all);
    pf_forget_texts(t);
}

#endif
