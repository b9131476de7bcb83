/*
 * Text for the moments when nothing else may be used: in a signal handler, on g0, in the monitor,
 * under a lock, after memory was corrupted. No malloc, no stdio, no lock, no errno.
 *
 * An Out collects bytes in a small buffer, usually on the caller's stack, and writes them by one
 * write(2) when the buffer is full or at out_flush(). A full buffer is written up to its last line
 * end, so a line that fits into it is never torn, and lines of several threads do not mix.
 */
#ifndef PRINT_H
#define PRINT_H

#include "base/base.h"

#include <stdarg.h>

typedef struct Out {
    int fd; /* -1: into the buffer only; what does not fit is cut */
    uint32_t used;
    uint32_t size;
    int failed; /* -errno of the first failure: the rest is dropped; 0: none */
    char *buf;
    /* fd -1: makes buf larger; false: no memory. NULL: buf stays as it is. An Out that grows is an
     * ordinary goroutine's, where malloc may be called (scratch.h) */
    bool (*more)(struct Out *o);
} Out;

#define OUT(fd_, array) ((Out){.fd = (fd_), .size = sizeof(array), .buf = (array)})

void out_bytes(Out *o, const char *s, size_t n);
void out_str(Out *o, const char *s);
/* %s %c %% %p, and %d %i %u %x with `l`, `ll`, `z` and a field width (padded on the left with
 * blanks, or with zeros after a `0`). Anything else is printed as it stands. */
void out_fmt(Out *o, const char *format, ...) PRINTF(2, 3);
void out_vfmt(Out *o, const char *format, va_list ap);
/* A string of JSON, in its quotes. What is not UTF-8 becomes U+FFFD: readers refuse it. */
void out_json(Out *o, const char *s);
/* A name for people, in one line: control characters and what is not UTF-8 become \xNN. */
void out_plain(Out *o, const char *s);
/* The bytes of the character at s, which is not empty; 0: it is not UTF-8. */
size_t utf8_bytes(const char *s);
void out_flush(Out *o);
/* As much of the name as fits, no half a character of UTF-8; the rest of `to` is zero. */
void copy_name(char *to, size_t size, const char *name);

/* One piece of text (up to 1 KB, cut beyond) in one write. 0, or -errno. */
int print_fd(int fd, const char *format, ...) PRINTF(2, 3);
/* Into buf, always ended by a zero byte; the length. */
size_t print_buf(char *buf, size_t size, const char *format, ...) PRINTF(3, 4);

/* The names of errors; the last is NULL. */
typedef struct ErrnoName {
    const char *name;
    int error;
} ErrnoName;
extern const ErrnoName errno_names[];
const char *errno_name(int error); /* NULL: it has none here */

/* The n bytes at s are this word. */
INLINE bool word_is(const char *s, size_t n, const char *word) {
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

INLINE int hex_digit(char c) { /* -1: it is none */
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The n bytes at s as a number, digits only; more than 64 bits count as UINT64_MAX. */
bool parse_u64(const char *s, size_t n, uint64_t *v);

INLINE bool begins_with(const char *s, const char *word) {
    while (*word && *s == *word) s++, word++;
    return *word == 0;
}

/* All of buf, over EINTR, short writes and a full pipe. 0, -errno. */
int write_all(int fd, const char *buf, size_t n);

#endif
