/* A cursor over the bytes of DWARF's tables. A read past the end sets `bad` and gives 0. */
#ifndef BYTES_H
#define BYTES_H

#include "base/base.h"

typedef struct Bytes {
    const uint8_t *at, *end;
    bool bad;
} Bytes;

INLINE uint64_t bytes_left(const Bytes *b) { return (uint64_t)(b->end - b->at); }

static inline uint64_t fixed(Bytes *b, unsigned n) {
    uint64_t v = 0;
    if (bytes_left(b) < n) {
        b->bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&v, b->at, n);
    b->at += n;
    return v;
}

static inline int64_t leb(Bytes *b, bool is_signed) {
    uint64_t v = 0, byte = 0x80;
    unsigned shift = 0;
    for (; byte & 0x80; shift += 7) {
        byte = fixed(b, 1);
        if (b->bad || shift > 63) return b->bad = true, 0;
        v |= (byte & 0x7f) << shift;
    }
    if (is_signed && shift < 64 && (byte & 0x40)) v |= ~(uint64_t)0 << shift;
    return (int64_t)v;
}

static inline uint64_t uleb(Bytes *b) { return (uint64_t)leb(b, false); }
static inline int64_t sleb(Bytes *b) { return leb(b, true); }

/* The next n bytes, as a cursor of their own; an empty one, with `bad` set: they are not there. */
static inline Bytes bytes_take(Bytes *b, uint64_t n) {
    if (b->bad || n > bytes_left(b)) {
        b->bad = true;
        return (Bytes){b->end, b->end, true};
    }
    b->at += n;
    return (Bytes){b->at - n, b->at, false};
}

#endif
