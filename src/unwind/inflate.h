/* Reads what zlib has compressed (inflate.c). */
#ifndef INFLATE_H
#define INFLATE_H

#include "base/base.h"

/* False: the n bytes are not a stream of exactly size bytes. No memory, no call. */
bool inflate_zlib(const uint8_t *from, size_t n, uint8_t *to, size_t size);

#endif
