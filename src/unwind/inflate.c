/*
 * Takes zlib's form apart (RFC 1950, 1951): debug sections are often compressed, always so in the
 * packages of debug files that distributions have, and zlib itself allocates.
 *
 * Code lengths are canonical, so a code is read bit by bit with only the number of codes of each
 * length at hand: no tables to build. Line tables expand at some 15 MB a second, which is enough
 * for a dump. Nothing is trusted: each read and write is bounded, and a wrong stream is an error or
 * wrong bytes. The sum at the end is not looked at: what is read here is checked where it is used
 * (linetable.c).
 */
#include "unwind/inflate.h"

enum { LONGEST_CODE = 15, LITERALS = 288, DISTANCES = 32, BLOCK_END = 256 };

typedef struct Inflate {
    const uint8_t *at, *end;
    uint8_t *to;
    size_t n, size; /* written, and room */
    uint32_t bits;  /* read ahead: the lowest nbits */
    unsigned nbits;
    bool bad;
} Inflate;

typedef struct Codes {
    uint16_t count[LONGEST_CODE + 1]; /* how many codes have this length */
    uint16_t symbol[LITERALS];        /* in the order of their codes */
} Codes;

static unsigned inflate_bits(Inflate *f, unsigned n) {
    for (; f->nbits < n; f->nbits += 8) {
        if (f->at == f->end) return f->bad = true, 0;
        f->bits |= (uint32_t)*f->at++ << f->nbits;
    }
    unsigned v = f->bits & (((uint32_t)1 << n) - 1);
    f->bits >>= n;
    f->nbits -= n;
    return v;
}

static void codes_set(Codes *c, const uint8_t *lengths, unsigned n) {
    uint16_t next[LONGEST_CODE + 1];
    memset(c->count, 0, sizeof c->count);
    for (unsigned i = 0; i < n; i++) c->count[lengths[i]]++;
    c->count[0] = next[0] = next[1] = 0;
    for (unsigned l = 1; l < LONGEST_CODE; l++) next[l + 1] = (uint16_t)(next[l] + c->count[l]);
    for (unsigned i = 0; i < n; i++)
        if (lengths[i]) c->symbol[next[lengths[i]]++] = (uint16_t)i;
}

/* least: the smallest code of this length; below: how many symbols have shorter ones. */
static unsigned inflate_symbol(Inflate *f, const Codes *c) {
    unsigned code = 0, least = 0, below = 0;
    for (unsigned l = 1; l <= LONGEST_CODE && !f->bad; l++) {
        code = code << 1 | inflate_bits(f, 1);
        if (code - least < c->count[l]) return c->symbol[below + code - least];
        below += c->count[l];
        least = (least + c->count[l]) << 1;
    }
    f->bad = true;
    return BLOCK_END;
}

static void inflate_byte(Inflate *f, uint8_t v) {
    if (f->n < f->size) f->to[f->n++] = v;
    else f->bad = true;
}

/* A length or a distance: the first 2 * step values one by one, then `step` for each extra bit. */
static unsigned inflate_value(Inflate *f, unsigned i, unsigned step, unsigned least) {
    if (i < 2 * step) return least + i;
    unsigned extra = i / step - 1;
    return least + ((step + i % step) << extra) + inflate_bits(f, extra);
}

static void inflate_match(Inflate *f, unsigned symbol, const Codes *distances) {
    unsigned length = symbol == 285 ? 258 : inflate_value(f, symbol - 257, 4, 3);
    unsigned distance = inflate_symbol(f, distances);
    if (symbol > 285 || distance > 29) f->bad = true;
    else distance = inflate_value(f, distance, 2, 1);
    if (distance > f->n) f->bad = true;
    for (; length > 0 && !f->bad; length--) inflate_byte(f, f->to[f->n - distance]);
}

static void inflate_coded(Inflate *f, const Codes *literals, const Codes *distances) {
    for (unsigned s; !f->bad && (s = inflate_symbol(f, literals)) != BLOCK_END;) {
        if (s < BLOCK_END) inflate_byte(f, (uint8_t)s);
        else inflate_match(f, s, distances);
    }
}

static void inflate_stored(Inflate *f) {
    f->bits = f->nbits = 0; /* to the next byte: no more than seven bits were read ahead */
    unsigned n = inflate_bits(f, 16), not = inflate_bits(f, 16);
    if ((n ^ not ) != 0xffff) f->bad = true;
    for (; n > 0 && !f->bad; n--) inflate_byte(f, (uint8_t)inflate_bits(f, 8));
}

static void inflate_fixed(Inflate *f) {
    uint8_t lengths[LITERALS + DISTANCES];
    Codes literals, distances;
    for (unsigned i = 0; i < LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(lengths + LITERALS, 5, DISTANCES);
    codes_set(&literals, lengths, LITERALS);
    codes_set(&distances, lengths + LITERALS, DISTANCES);
    inflate_coded(f, &literals, &distances);
}

/* The lengths of n codes, themselves in a code. */
static void inflate_lengths(Inflate *f, const Codes *c, uint8_t *lengths, unsigned n) {
    for (unsigned i = 0; i < n && !f->bad;) {
        unsigned s = inflate_symbol(f, c), times = 1;
        uint8_t v = 0;
        if (s < 16) v = (uint8_t)s;
        else if (s == 16 && i > 0) v = lengths[i - 1], times = 3 + inflate_bits(f, 2);
        else if (s == 17) times = 3 + inflate_bits(f, 3);
        else if (s == 18) times = 11 + inflate_bits(f, 7);
        else f->bad = true;
        if (times > n - i) f->bad = true;
        for (; times > 0 && !f->bad; times--) lengths[i++] = v;
    }
}

static void inflate_dynamic(Inflate *f) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES] = {0};
    Codes literals, distances;
    unsigned n = 257 + inflate_bits(f, 5), d = 1 + inflate_bits(f, 5), k = 4 + inflate_bits(f, 4);
    for (unsigned i = 0; i < k; i++) lengths[order[i]] = (uint8_t)inflate_bits(f, 3);
    codes_set(&literals, lengths, sizeof order);
    if (n > LITERALS) f->bad = true;
    else inflate_lengths(f, &literals, lengths, n + d);
    if (f->bad) return;
    codes_set(&literals, lengths, n);
    codes_set(&distances, lengths + n, d);
    inflate_coded(f, &literals, &distances);
}

bool inflate_zlib(const uint8_t *from, size_t n, uint8_t *to, size_t size) {
    if (n < 2 || (from[0] & 15) != 8 || (from[0] << 8 | from[1]) % 31 != 0 || (from[1] & 32))
        return false;
    Inflate f = {.at = from + 2, .end = from + n, .to = to, .size = size};
    for (bool last = false; !last && !f.bad;) {
        last = inflate_bits(&f, 1);
        switch (inflate_bits(&f, 2)) {
        case 0: inflate_stored(&f); break;
        case 1: inflate_fixed(&f); break;
        case 2: inflate_dynamic(&f); break;
        default: f.bad = true;
        }
    }
    return !f.bad && f.n == size;
}
