/* The formatter behind fatal errors, dumps and schedtrace (print.h). Bare system calls only. */
#include "base/print.h"
#include "os/os.h"

#include <poll.h>
#include <sys/syscall.h>

/* Waits until fd takes bytes: descriptors of the program are often O_NONBLOCK. */
static int wait_writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    long r = os_sys(SYS_ppoll, (long)&p, 1, 0, 0, 0, 0);
    return r < 0 && r != -EINTR ? (int)r : 0;
}

int write_all(int fd, const char *buf, size_t n) {
    while (n > 0) {
        long r = os_write(fd, buf, n);
        if (r > 0) {
            buf += r;
            n -= (size_t)r;
        } else if (r == -EAGAIN) {
            int e = wait_writable(fd);
            if (e < 0) return e;
        } else if (r != -EINTR) {
            return r == 0 ? -EIO : (int)r;
        }
    }
    return 0;
}

static void write_first(Out *o, uint32_t n) {
    if (!o->failed) o->failed = write_all(o->fd, o->buf, n);
    memmove(o->buf, o->buf + n, o->used - n);
    o->used -= n;
}

void out_flush(Out *o) {
    if (o->fd >= 0 && o->used > 0) write_first(o, o->used);
}

static bool enlarge(Out *o) {
    bool more = o->more && o->more(o);
    if (o->more && !more) o->failed = -ENOMEM;
    return more;
}

/* Writes the complete lines of a full buffer; a line larger than the buffer is torn. */
static void make_room(Out *o) {
    uint32_t n = o->used;
    while (n > 0 && o->buf[n - 1] != '\n') n--;
    write_first(o, n > 0 ? n : o->used);
}

void out_bytes(Out *o, const char *s, size_t n) {
    while (n > 0) {
        if (o->used == o->size) {
            if (o->fd >= 0) make_room(o);
            else if (!enlarge(o)) return;
        }
        size_t k = o->size - o->used < n ? o->size - o->used : n;
        memcpy(o->buf + o->used, s, k);
        o->used += (uint32_t)k;
        s += k;
        n -= k;
    }
}

void out_str(Out *o, const char *s) { out_bytes(o, s ? s : "(null)", strlen(s ? s : "(null)")); }

static void out_number(Out *o, uint64_t v, bool negative, unsigned base, int width, char pad) {
    char text[24];
    int at = sizeof text;
    do text[--at] = "0123456789abcdef"[v % base];
    while ((v /= base) != 0);
    int length = (int)sizeof text - at + negative;
    if (negative && pad == '0') out_bytes(o, "-", 1);
    for (; length < width; length++) out_bytes(o, &pad, 1);
    if (negative && pad != '0') out_bytes(o, "-", 1);
    out_bytes(o, text + at, sizeof text - (size_t)at);
}

/* One conversion; s is behind the '%'. Returns where the text goes on. */
static const char *convert(Out *o, const char *s, va_list *ap) {
    const char *start = s - 1;
    char pad = ' ';
    int width = 0, longs = 0;
    if (*s == '0') pad = *s++;
    while (*s >= '0' && *s <= '9') width = width * 10 + (*s++ - '0');
    while (*s == 'l' || *s == 'z') longs++, s++;
    switch (*s) {
    case 'd':
    case 'i': {
        int64_t v = longs ? va_arg(*ap, int64_t) : va_arg(*ap, int);
        out_number(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0, 10, width, pad);
        return s + 1;
    }
    case 'u':
    case 'x': {
        uint64_t v = longs ? va_arg(*ap, uint64_t) : va_arg(*ap, unsigned);
        out_number(o, v, false, *s == 'u' ? 10 : 16, width, pad);
        return s + 1;
    }
    case 'p':
        out_bytes(o, "0x", 2);
        out_number(o, (uint64_t)(uintptr_t)va_arg(*ap, void *), false, 16, width, '0');
        return s + 1;
    case 'c': {
        char c = (char)va_arg(*ap, int);
        out_bytes(o, &c, 1);
        return s + 1;
    }
    case 's': out_str(o, va_arg(*ap, const char *)); return s + 1;
    case '%': out_bytes(o, "%", 1); return s + 1;
    default: /* a mistake in the format: show it, eat no argument */
        out_bytes(o, start, (size_t)(s - start));
        return s;
    }
}

/* The length of the UTF-8 character of two bytes or more at s; 0: it is none (Unicode, table 3-7).
 * The end of the string is no byte of a character. */
static size_t utf8_length(const unsigned char *s) {
    unsigned c = s[0], lo = 0x80, hi = 0xbf;
    size_t n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (c == 0xe0) lo = 0xa0; /* shorter forms exist */
    if (c == 0xf0) lo = 0x90;
    if (c == 0xed) hi = 0x9f; /* surrogates */
    if (c == 0xf4) hi = 0x8f; /* beyond U+10FFFF */
    if (n == 0 || s[1] < lo || s[1] > hi) return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

size_t utf8_bytes(const char *s) {
    return (unsigned char)*s < 128 ? 1 : utf8_length((const unsigned char *)s);
}

void out_plain(Out *o, const char *s) {
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = utf8_bytes(s);
        if (n == 0 || c < ' ' || c == 127) out_fmt(o, "\\x%02x", c), n = 1;
        else out_bytes(o, s, n);
    }
}

void copy_name(char *to, size_t size, const char *name) {
    size_t n = 0;
    memset(to, 0, size);
    for (; n < size - 1 && name[n]; n++) to[n] = name[n];
    for (int i = 0; i < 3 && (name[n] & 0xc0) == 0x80; i++) to[--n] = 0; /* it has been cut */
}

void out_json(Out *o, const char *s) {
    out_str(o, "\"");
    for (size_t n; *s; s += n) {
        unsigned char c = (unsigned char)*s;
        n = utf8_bytes(s);
        if (n == 0) out_str(o, "\\ufffd"), n = 1;
        else if (c == '"' || c == '\\') out_fmt(o, "\\%c", c);
        else if (c < ' ' || c == 127) out_fmt(o, "\\u%04x", c);
        else out_bytes(o, s, n);
    }
    out_str(o, "\"");
}

void out_vfmt(Out *o, const char *format, va_list ap) {
    va_list args;
    va_copy(args, ap); /* a va_list parameter is an array on some machines: no address of it */
    for (const char *s = format; *s;) {
        const char *plain = s;
        while (*s && *s != '%') s++;
        out_bytes(o, plain, (size_t)(s - plain));
        if (*s == '%') s = convert(o, s + 1, &args);
    }
    va_end(args);
}

void out_fmt(Out *o, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    out_vfmt(o, format, ap);
    va_end(ap);
}

bool parse_u64(const char *s, size_t n, uint64_t *v) {
    uint64_t x = 0;
    if (n == 0) return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        uint64_t digit = (uint64_t)(s[i] - '0');
        x = x > (UINT64_MAX - digit) / 10 ? UINT64_MAX : x * 10 + digit;
    }
    *v = x;
    return true;
}

/* What system calls give, and what a filter of them likes to give. */
const ErrnoName errno_names[] = {
#define E(e) \
    { #e, e }
    E(EACCES),     E(EADDRINUSE),  E(EADDRNOTAVAIL), E(EAFNOSUPPORT), E(EAGAIN),      E(EBADF),
    E(EBUSY),      E(ECANCELED),   E(ECONNABORTED),  E(ECONNREFUSED), E(ECONNRESET),  E(EDQUOT),
    E(EEXIST),     E(EFAULT),      E(EFBIG),         E(EHOSTUNREACH), E(EINPROGRESS), E(EINTR),
    E(EINVAL),     E(EIO),         E(EISCONN),       E(ELOOP),        E(EMFILE),      E(EMSGSIZE),
    E(ENETDOWN),   E(ENETUNREACH), E(ENFILE),        E(ENOBUFS),      E(ENODEV),      E(ENOENT),
    E(ENOMEM),     E(ENOSPC),      E(ENOSYS),        E(ENOTCONN),     E(ENOTSOCK),    E(ENXIO),
    E(EOPNOTSUPP), E(EOVERFLOW),   E(EPERM),         E(EPIPE),        E(EPROTO),      E(ESRCH),
    E(ESTALE),     E(ETIMEDOUT),   {NULL, 0},
#undef E
};

const char *errno_name(int error) {
    for (const ErrnoName *e = errno_names; e->name; e++)
        if (e->error == error) return e->name;
    return NULL;
}

const char *errno_word(long r) {
    const char *name = errno_name((int)-r);
    return name ? name : "an error without a name";
}

int print_fd(int fd, const char *format, ...) {
    char buf[1024];
    Out o = OUT(-1, buf);
    va_list ap;
    va_start(ap, format);
    out_vfmt(&o, format, ap);
    va_end(ap);
    return write_all(fd, buf, o.used);
}

size_t print_buf(char *buf, size_t size, const char *format, ...) {
    if (size == 0) return 0;
    Out o = {.fd = -1, .size = (uint32_t)(size - 1), .buf = buf};
    va_list ap;
    va_start(ap, format);
    out_vfmt(&o, format, ap);
    va_end(ap);
    buf[o.used] = 0;
    return o.used;
}
