/* What zlib has compressed: stored, with fixed codes (our own compressor), with codes of its own
 * (zlib's output, kept here); and streams that are cut or changed, which never lead outside of
 * their room. */
#include "../lib/white.h"
#include "inspect/deflate.h"
#include "runtime.h"
#include "unwind/inflate.h"

static const uint8_t dynamic[] = {
    0x78, 0xda, 0x6d, 0xd2, 0x4b, 0x0a, 0x02, 0x31, 0x10, 0x45, 0xd1, 0xad, 0xd4, 0x12, 0xec,
    0x74, 0x3e, 0x15, 0x5c, 0x4f, 0xc4, 0x86, 0x46, 0x07, 0x8a, 0xeb, 0x17, 0xa7, 0x72, 0xa6,
    0x8f, 0xca, 0xcd, 0xe5, 0x55, 0x9d, 0xc7, 0x63, 0xc5, 0x25, 0x9e, 0xb7, 0x78, 0xdf, 0x57,
    0xbc, 0x8e, 0xf5, 0x59, 0xd7, 0x38, 0x7f, 0xe1, 0xa6, 0xb0, 0x2a, 0x9c, 0x7c, 0xde, 0x95,
    0x96, 0xa6, 0x74, 0xe7, 0x6c, 0x25, 0xb7, 0x53, 0x21, 0x69, 0xbb, 0x53, 0x81, 0x80, 0x3a,
    0x94, 0x8e, 0x42, 0x02, 0xff, 0xa2, 0x41, 0xe7, 0xec, 0x74, 0x0b, 0xd4, 0x1d, 0x5e, 0x0e,
    0xb9, 0x8d, 0x84, 0xe9, 0x76, 0xbd, 0x4a, 0x6f, 0xdd, 0x5c, 0x12, 0x1a, 0x7d, 0x93, 0xe5,
    0xb0, 0x86, 0xc2, 0x4d, 0x24, 0x09, 0x8d, 0x0a, 0x85, 0xe5, 0xa4, 0xcf, 0xc9, 0x87, 0x43,
    0xb3, 0x8d, 0xb3, 0xc9, 0x7a, 0xfb, 0x7f, 0xfa, 0x05, 0x6c, 0x80, 0x1b, 0x4d};

enum { LENGTH = 873 };
static char text[LENGTH + 1];
static uint8_t out[DEFLATE_MOST + 1], packed[DEFLATE_ROOM];
static Deflate deflate;

static void with_codes_of_its_own(void) {
    size_t n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)sprintf(text + n, "line %d of the sieve; ", i * i % 97);
    CHECK_EQ(n, LENGTH);
    CHECK(inflate_zlib(dynamic, sizeof dynamic, out, LENGTH));
    CHECK(memcmp(out, text, LENGTH) == 0);
    CHECK(!inflate_zlib(dynamic, sizeof dynamic, out, LENGTH - 1)); /* exactly so many */
    CHECK(!inflate_zlib(dynamic, sizeof dynamic, out, LENGTH + 1));
}

static void stored(void) {
    uint8_t z[7 + LENGTH] = {
        0x78, 1, 1, LENGTH & 255, LENGTH >> 8, ~LENGTH & 255, (uint8_t) ~(LENGTH >> 8)};
    memcpy(z + 7, text, LENGTH);
    CHECK(inflate_zlib(z, sizeof z, out, LENGTH) && memcmp(out, text, LENGTH) == 0);
    z[5] ^= 1; /* the length's complement */
    CHECK(!inflate_zlib(z, sizeof z, out, LENGTH));
}

/* Of every kind: noise, runs, text, with matches at all distances. */
static void with_fixed_codes(uint64_t *seed) {
    static uint8_t in[DEFLATE_MOST];
    for (int round = 0; round < 200; round++) {
        size_t n = 1 + random_next(seed) % (round < 190 ? 5000 : sizeof in);
        unsigned letters = 1 + (unsigned)(random_next(seed) % 255);
        for (size_t i = 0; i < n; i++) {
            bool again = i > 0 && random_next(seed) % 4 != 0;
            in[i] = again ? in[random_next(seed) % i] : (uint8_t)(random_next(seed) % letters);
        }
        for (size_t i = 1; i + 300 < n && round % 2; i += 1 + random_next(seed) % 500)
            memmove(in + i, in + random_next(seed) % i, 1 + random_next(seed) % 300);
        size_t z = deflate_block(&deflate, in, n, packed);
        memset(out, 0xa5, sizeof out);
        CHECK(inflate_zlib(packed, z, out, n));
        CHECK(memcmp(in, out, n) == 0 && out[n] == 0xa5);
    }
}

static void broken(uint64_t *seed) {
    uint8_t z[sizeof dynamic];
    for (size_t cut = 0; cut < sizeof dynamic - 4; cut++) /* the last four are the sum */
        CHECK(!inflate_zlib(dynamic, cut, out, LENGTH));
    for (int round = 0; round < 200000; round++) {
        memcpy(z, dynamic, sizeof z);
        for (int k = 1 + round % 5; k > 0; k--)
            z[2 + random_next(seed) % (sizeof z - 2)] = (uint8_t)random_next(seed);
        out[LENGTH] = 0xa5;
        inflate_zlib(z, sizeof z, out, LENGTH);
        CHECK_EQ(out[LENGTH], 0xa5);
    }
    z[0] = 0x79; /* another method */
    CHECK(!inflate_zlib(z, sizeof z, out, LENGTH));
}

int main(void) {
    uint64_t seed = 42;
    with_codes_of_its_own();
    stored();
    with_fixed_codes(&seed);
    broken(&seed);
    return 0;
}
