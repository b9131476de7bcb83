/*
 * Buffered writing.
 *
 * buf[start, end) has been taken and not been written. A flush that fails leaves what it has not
 * written, and the next one goes on there. Text is taken as a whole or not at all: the room grows
 * for it. A write that is longer than the room is taken in parts, as gort_write may.
 */
#include "sched/alloc.h"
#include "sched/sched.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#define WRITER_ROOM 65536

struct gort_writer {
    int fd;
    size_t room, start, end;
    int64_t deadline;
    char *buf;
};

EXPORT gort_writer *gort_writer_new(int fd, size_t room) {
    if (in_forked_child() || room > SSIZE_MAX) return NULL;
    if (room == 0) room = WRITER_ROOM;
    gort_writer *w = quiet_alloc(sizeof *w);
    char *buf = w ? quiet_alloc(room) : NULL;
    if (buf == NULL) {
        quiet_free(w);
        return NULL;
    }
    *w = (gort_writer){.fd = fd, .room = room, .deadline = GORT_FOREVER, .buf = buf};
    return w;
}

EXPORT void gort_writer_deadline(gort_writer *w, int64_t deadline) {
    if (in_forked_child()) return;
    leave(enter()); /* a child of vfork ends here */
    w->deadline = deadline;
}

EXPORT void gort_writer_free(gort_writer *w) {
    if (w == NULL || in_forked_child()) return;
    leave(enter()); /* a child of vfork ends here */
    quiet_free(w->buf);
    quiet_free(w);
}

EXPORT int gort_writer_flush(gort_writer *w) {
    if (in_forked_child()) return -ENOTCONN;
    leave(enter()); /* a child of vfork ends here */
    while (w->start < w->end) {
        ssize_t n = gort_write_until(w->fd, w->buf + w->start, w->end - w->start, w->deadline);
        if (n < 0) return (int)n;
        w->start += (size_t)n;
    }
    w->start = w->end = 0;
    return 0;
}

/* As many bytes as there is room for, after a flush where there is none. */
static ssize_t buffer_take(gort_writer *w, const char *buf, size_t n) {
    if (w->end + n > w->room) {
        int e = gort_writer_flush(w);
        if (e < 0) return e;
        if (n >= w->room) return gort_write_until(w->fd, buf, n, w->deadline);
    }
    memcpy(w->buf + w->end, buf, n);
    w->end += n;
    return (ssize_t)n;
}

EXPORT ssize_t gort_writer_write(gort_writer *w, const void *buf, size_t n) {
    if (in_forked_child()) return -ENOTCONN;
    leave(enter()); /* a child of vfork ends here */
    if (n > SSIZE_MAX) return -EINVAL;
    for (size_t done = 0; done < n;) {
        ssize_t k = buffer_take(w, (const char *)buf + done, n - done);
        if (k < 0) return done > 0 ? (ssize_t)done : k;
        done += (size_t)k;
    }
    return (ssize_t)n;
}

/* The buffer is empty. */
static int buffer_grow(gort_writer *w, size_t room) {
    char *buf = quiet_alloc(room);
    if (buf == NULL) return -ENOMEM;
    quiet_free(w->buf);
    w->buf = buf;
    w->room = room;
    return 0;
}

/* Twice at most: with what is left of the room, and with as much as it takes. */
EXPORT ssize_t gort_writer_printf(gort_writer *w, const char *format, ...) {
    if (in_forked_child()) return -ENOTCONN;
    leave(enter()); /* a child of vfork ends here */
    int saved = *gort_errno_location();
    ssize_t r = -EAGAIN;
    while (r == -EAGAIN) {
        va_list args;
        size_t left = w->room - w->end;
        va_start(args, format);
        int n = vsnprintf(w->buf + w->end, left, format, args);
        if (n < 0) r = -EINVAL;
        else if ((size_t)n < left) w->end += (size_t)n, r = n;
        else r = gort_writer_flush(w);
        if (r == 0 && (size_t)n >= left) {
            if ((size_t)n >= w->room) r = buffer_grow(w, (size_t)n + 1);
            if (r == 0) r = -EAGAIN; /* once more, with that room */
        }
        va_end(args);
    }
    *gort_errno_location() = saved;
    return r;
}
