/* Compression by the format of zlib (RFC 1950, RFC 1951): deflate.c. */
#ifndef DEFLATE_H
#define DEFLATE_H

#include "base/base.h"

#define DEFLATE_MOST (64u << 10) /* bytes that are compressed at once, at most */
/* Room for the result: a literal takes up to 9 bits, and there is a head, an end and a sum. */
#define DEFLATE_ROOM (DEFLATE_MOST / 8 * 9 + 16)

typedef struct Deflate {
    uint8_t *to;
    size_t n;
    uint64_t bits; /* not written yet; the lowest is the next */
    unsigned nbits;
    uint16_t head[1 << 13];      /* hash -> the last place + 1 */
    uint16_t prev[DEFLATE_MOST]; /* place -> the one before with this hash, + 1 */
} Deflate;

/* A whole zlib stream of from[0..n) in to, which has DEFLATE_ROOM; its length. Any state of d. */
size_t deflate_block(Deflate *d, const uint8_t *from, size_t n, uint8_t *to);

#endif
