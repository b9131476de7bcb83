/*
 * Buffered reading: lines, and what comes behind them.
 *
 * buf[start, end) has been read and not been given out; buf[start, start + seen) has no `seen_end`.
 * A call that fails leaves all of it, and the next one goes on. The room grows up to the longest
 * line with its "\r\n", and one byte for the NUL.
 *
 * A line is too long as soon as it has limit + 1 bytes, where the last is no "\r" that may belong
 * to its end. The rest of it is thrown away by the next call, up to `skip_end`.
 */
#include "sched/alloc.h"
#include "sched/sched.h"

#include <limits.h>

#define ROOM_FIRST 4096
#define LIMIT_USUAL 65536

struct gort_reader {
    int fd;
    char seen_end, skip_end;
    bool skips; /* the rest of a line that was too long */
    size_t limit, room, start, end, seen;
    int64_t deadline;
    char *buf;
};

EXPORT gort_reader *gort_reader_new(int fd, size_t limit) {
    if (in_forked_child() || limit > SSIZE_MAX - 3) return NULL;
    gort_reader *r = quiet_alloc(sizeof *r);
    char *buf = r ? quiet_alloc(ROOM_FIRST) : NULL;
    if (buf == NULL) {
        quiet_free(r);
        return NULL;
    }
    *r = (gort_reader){.fd = fd, .limit = limit ? limit : LIMIT_USUAL, .room = ROOM_FIRST};
    r->deadline = GORT_FOREVER;
    r->buf = buf;
    return r;
}

EXPORT void gort_reader_deadline(gort_reader *r, int64_t deadline) {
    if (in_forked_child()) return;
    leave(enter()); /* a child of vfork ends here */
    r->deadline = deadline;
}

EXPORT void gort_reader_free(gort_reader *r) {
    if (r == NULL || in_forked_child()) return;
    leave(enter()); /* a child of vfork ends here */
    quiet_free(r->buf);
    quiet_free(r);
}

static size_t reader_has(const gort_reader *r) { return r->end - r->start; }

static void reader_drop(gort_reader *r, size_t n) {
    r->start += n;
    r->seen = 0;
    if (r->start == r->end) r->start = r->end = 0;
}

/* 0: there is room behind the end, beside that for the NUL. */
static int reader_make_room(gort_reader *r) {
    size_t most = r->limit + 3, room = r->room * 2;
    if (r->end + 1 < r->room) return 0;
    if (r->start > 0) {
        memmove(r->buf, r->buf + r->start, reader_has(r));
        r->end -= r->start;
        r->start = 0;
        if (r->end + 1 < r->room) return 0;
    }
    if (room > most) room = most; /* above the old one: else the line was too long */
    char *buf = quiet_alloc(room);
    if (buf == NULL) return -ENOMEM;
    memcpy(buf, r->buf, r->end);
    quiet_free(r->buf);
    r->buf = buf;
    r->room = room;
    return 0;
}

/* What gort_read_until gives; -ENOMEM. */
static ssize_t reader_fill(gort_reader *r) {
    int e = reader_make_room(r);
    if (e < 0) return e;
    ssize_t n = gort_read_until(r->fd, r->buf + r->end, r->room - 1 - r->end, r->deadline);
    if (n > 0) r->end += (size_t)n;
    return n;
}

/* The length up to `end`; -1: it has not come yet. */
static ssize_t reader_find(gort_reader *r, char end) {
    if (r->seen_end != end) r->seen = 0;
    r->seen_end = end;
    const char *from = r->buf + r->start;
    const char *at = memchr(from + r->seen, end, reader_has(r) - r->seen);
    if (at) return at - from;
    r->seen = reader_has(r);
    return -1;
}

/* Throws the rest of a line away: what reader_fill gave last; > 0: done. */
static ssize_t reader_skip(gort_reader *r) {
    while (r->skips) {
        ssize_t n = reader_find(r, r->skip_end);
        r->skips = n < 0;
        reader_drop(r, n < 0 ? reader_has(r) : (size_t)n + 1);
        if (!r->skips) break;
        n = reader_fill(r);
        if (n == 0) r->skips = false;
        if (n <= 0) return n;
    }
    return 1;
}

/* The first n bytes are the line, and `used` go. */
static ssize_t reader_give(gort_reader *r, size_t n, size_t used, char **text) {
    *text = r->buf + r->start;
    (*text)[n] = 0;
    reader_drop(r, used);
    return (ssize_t)n;
}

static bool reader_ends_in_cr(const gort_reader *r, size_t n) {
    return n > 0 && r->buf[r->start + n - 1] == '\r';
}

/* Its end has not come: all there is belongs to it. */
static ssize_t reader_too_long(gort_reader *r, char end) {
    r->skips = true;
    r->skip_end = end;
    reader_drop(r, reader_has(r));
    return -EMSGSIZE;
}

/* The end is n bytes further. */
static ssize_t reader_line_at(gort_reader *r, size_t n, bool cr, char **text) {
    size_t used = n + 1;
    if (cr && reader_ends_in_cr(r, n)) n--;
    if (n <= r->limit) return reader_give(r, n, used, text);
    reader_drop(r, used);
    return -EMSGSIZE;
}

/* cr: a "\r" before the end belongs to it. */
static ssize_t reader_text(gort_reader *r, char end, bool cr, char **text) {
    if (in_forked_child()) return -ENOTCONN;
    leave(enter()); /* a child of vfork ends here */
    ssize_t n = reader_skip(r);
    while (n > 0) {
        ssize_t at = reader_find(r, end);
        if (at >= 0) return reader_line_at(r, (size_t)at, cr, text);
        size_t has = reader_has(r), most = r->limit + (cr && reader_ends_in_cr(r, has));
        if (has > most) return reader_too_long(r, end);
        n = reader_fill(r);
    }
    if (n < 0) return n;
    size_t left = reader_has(r);
    if (left == 0) return -ENODATA;
    if (left <= r->limit) return reader_give(r, left, left, text);
    reader_drop(r, left);
    return -EMSGSIZE;
}

EXPORT ssize_t gort_reader_line(gort_reader *r, char **line) {
    return reader_text(r, '\n', true, line);
}

EXPORT ssize_t gort_reader_until(gort_reader *r, char end, char **text) {
    return reader_text(r, end, false, text);
}

EXPORT ssize_t gort_reader_read(gort_reader *r, void *buf, size_t n) {
    if (in_forked_child()) return -ENOTCONN;
    leave(enter()); /* a child of vfork ends here */
    ssize_t k = reader_skip(r);
    if (k <= 0) return k;
    size_t has = reader_has(r);
    if (has == 0) return gort_read_until(r->fd, buf, n, r->deadline);
    if (n > has) n = has;
    if (n > 0) memcpy(buf, r->buf + r->start, n);
    reader_drop(r, n);
    return (ssize_t)n;
}
