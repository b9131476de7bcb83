/*
 * A compressor for packets that repeat each other: earlier bytes are pointed to (LZ77), and symbols
 * have the code lengths that every reader knows (fixed Huffman codes). No memory of its own, no
 * call: it runs in a signal handler as well.
 */
#include "inspect/deflate.h"

enum { SHORTEST = 4, LONGEST_MATCH = 258, WINDOW = 32768, TRIES = 12, END_OF_BLOCK = 256 };

static void put_bits(Deflate *d, uint32_t v, unsigned n) {
    d->bits |= (uint64_t)v << d->nbits;
    for (d->nbits += n; d->nbits >= 8; d->nbits -= 8, d->bits >>= 8)
        d->to[d->n++] = (uint8_t)d->bits;
}

/* Codes begin with their highest bit. */
static void put_code(Deflate *d, uint32_t code, unsigned n) {
    uint32_t turned = 0;
    for (unsigned i = 0; i < n; i++) turned |= (code >> i & 1) << (n - 1 - i);
    put_bits(d, turned, n);
}

/* RFC 1951, 3.2.6. */
static void put_symbol(Deflate *d, unsigned s) {
    if (s < 144) put_code(d, 0x30 + s, 8);
    else if (s < 256) put_code(d, 0x190 + s - 144, 9);
    else if (s < 280) put_code(d, s - 256, 7);
    else put_code(d, 0xc0 + s - 280, 8);
}

/* RFC 1951, 3.2.5: `step` codes for each number of extra bits, from the one with none. */
static unsigned code_of(unsigned v, unsigned step, unsigned *extra) {
    unsigned bits = 0, code = 0;
    while (v >= (2 * step) << bits) bits++;
    *extra = bits;
    code = v >= step ? (bits + 1) * step + ((v >> bits) - step) : v;
    return code;
}

static void put_match(Deflate *d, unsigned length, unsigned distance) {
    unsigned extra, v = length - 3, code = code_of(v, 4, &extra);
    if (length == LONGEST_MATCH) {
        put_symbol(d, 285);
    } else {
        put_symbol(d, 257 + code);
        put_bits(d, v & ((1u << extra) - 1), extra);
    }
    v = distance - 1;
    code = code_of(v, 2, &extra);
    put_code(d, code, 5);
    put_bits(d, v & ((1u << extra) - 1), extra);
}

static unsigned hash_at(const uint8_t *s) {
    uint32_t v;
    memcpy(&v, s, 4);
    return v * 2654435761u >> (32 - 13);
}

static void enter_place(Deflate *d, const uint8_t *from, size_t at) {
    unsigned h = hash_at(from + at);
    d->prev[at] = d->head[h];
    d->head[h] = (uint16_t)(at + 1);
}

/* The longest of the last places that begin alike; 0: none. */
static unsigned find_match(Deflate *d, const uint8_t *from, size_t at, size_t n,
                           unsigned *distance) {
    unsigned best = 0, most = n - at < LONGEST_MATCH ? (unsigned)(n - at) : LONGEST_MATCH;
    size_t place = d->head[hash_at(from + at)];
    for (int i = 0; i < TRIES && place > 0 && at - (place - 1) <= WINDOW; i++) {
        const uint8_t *a = from + place - 1, *b = from + at;
        unsigned length = 0;
        while (length < most && a[length] == b[length]) length++;
        if (length > best) best = length, *distance = (unsigned)(at - (place - 1));
        if (best == most) break;
        place = d->prev[place - 1];
    }
    return best >= SHORTEST ? best : 0;
}

static uint32_t adler32(const uint8_t *s, size_t n) {
    uint32_t a = 1, b = 0;
    while (n > 0) {
        size_t part = n < 5552 ? n : 5552; /* so many sums fit into 32 bits */
        for (size_t i = 0; i < part; i++) a += s[i], b += a;
        a %= 65521, b %= 65521;
        s += part, n -= part;
    }
    return b << 16 | a;
}

size_t deflate_block(Deflate *d, const uint8_t *from, size_t n, uint8_t *to) {
    uint32_t sum = adler32(from, n);
    d->to = to;
    d->n = d->bits = d->nbits = 0;
    memset(d->head, 0, sizeof d->head);
    put_bits(d, 0x78, 8); /* deflate with a window of 32 KB; no dictionary */
    put_bits(d, 0x01, 8);
    put_bits(d, 1, 1); /* the last block */
    put_bits(d, 1, 2); /* fixed codes */
    for (size_t at = 0; at < n;) {
        unsigned distance = 0, length = 0;
        if (n - at >= SHORTEST) length = find_match(d, from, at, n, &distance);
        if (length) put_match(d, length, distance);
        else put_symbol(d, from[at]), length = 1;
        for (; length > 0; length--, at++)
            if (n - at >= SHORTEST) enter_place(d, from, at);
    }
    put_symbol(d, END_OF_BLOCK);
    if (d->nbits) put_bits(d, 0, 8 - d->nbits);
    for (int shift = 24; shift >= 0; shift -= 8) put_bits(d, sum >> shift & 255, 8);
    return d->n;
}
