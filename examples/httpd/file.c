/*
 * Files below the root. The path is decoded once, its "." and ".." are resolved as text, and it is
 * opened a name at a time from the root's descriptor: nothing leads above the root. Symbolic links
 * are not followed: a link, and what is below one, is not found. What is no regular file or
 * directory is not found either, nor is a name that begins with a dot.
 */
#define _GNU_SOURCE
#include "httpd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *end, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/plain; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".pdf", "application/pdf"},
    {".wasm", "application/wasm"},
    {".mp4", "video/mp4"},
    {".woff2", "font/woff2"},
};

static const char *type_of(const char *path) {
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof types / sizeof *types; i++)
        if (strcasecmp(end, types[i].end) == 0) return types[i].type;
    return "application/octet-stream";
}

/* ---- paths ---------------------------------------------------------------------------------- */

static int hex(char c) {
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 32) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The target up to "?", decoded; false: a wrong "%", a NUL. */
static bool decode(const char *target, char *path, size_t room) {
    size_t n = 0;
    for (; *target && *target != '?' && *target != '#' && n + 1 < room; target++) {
        int high = *target == '%' ? hex(target[1]) : 0;
        int low = *target == '%' && high >= 0 ? hex(target[2]) : 0;
        if (high < 0 || low < 0 || (*target == '%' && high + low == 0)) return false;
        path[n++] = *target == '%' ? (char)(high * 16 + low) : *target;
        if (*target == '%') target += 2;
    }
    path[n] = 0;
    return n + 1 < room;
}

/* Resolves "//", "/./" and "/../" in place; false: above the root. */
static bool resolve(char *path) {
    char *to = path, *name = path;
    while (*name) {
        name += strspn(name, "/");
        size_t n = strcspn(name, "/");
        bool last = name[n] == 0;
        if (n == 2 && memcmp(name, "..", 2) == 0) {
            if (to == path) return false;
            while (*--to != '/') {}
        } else if (n > 0 && !(n == 1 && *name == '.')) {
            *to++ = '/';
            memmove(to, name, n);
            to += n;
            if (last) return *to = 0, true;
        }
        name += n;
    }
    *to++ = '/'; /* "", or it ends in "/", "/." or "/.." */
    *to = 0;
    return true;
}

/* O_NONBLOCK: a FIFO's opening does not wait. */
static int open_below(int root, const char *path) {
    char name[256];
    int dir = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = dir;
    for (path += 1; fd >= 0 && *path; path += *path == '/') {
        size_t n = strcspn(path, "/");
        if (n >= sizeof name || *path == '.') return close(fd), -ENOENT;
        memcpy(name, path, n);
        name[n] = 0;
        path += n;
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        int e = errno;
        close(dir);
        dir = fd;
        errno = e;
    }
    return fd < 0 ? -errno : fd;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

typedef struct {
    int root, fd;
    const char *path;
    struct stat st;
    int result;
} Open;

static long open_file(void *arg) {
    Open *o = arg;
    o->fd = open_below(o->root, o->path);
    if (o->fd >= 0 && fstat(o->fd, &o->st) < 0) o->result = -errno;
    return 0;
}

/* From the page cache or the disk to the socket: a call that may block its thread for a moment. */
static ssize_t send_piece(int to, int from, off_t *at, size_t n) {
    gort_enter_syscall();
    ssize_t k = sendfile(to, from, at, n < (1 << 20) ? n : (1 << 20));
    gort_exit_syscall();
    return k < 0 ? -errno : k;
}

/* Exactly n bytes, whatever becomes of the file meanwhile: gort_copy goes to its end. */
static int send_file(Conn *c, int from, off_t at, unsigned long long n) {
    while (n > 0) {
        struct pollfd room = {.fd = c->fd, .events = POLLOUT};
        ssize_t k = send_piece(c->fd, from, &at, n);
        if (k == 0) return -EIO; /* it has become shorter: the client must not believe it whole */
        if (k == -EAGAIN)
            k = gort_poll_until(&room, 1, gort_now() + options.write) < 0 ? -ETIMEDOUT : 0;
        if (k < 0) return (int)k;
        n -= (size_t)k;
        c->sent += (size_t)k;
    }
    return 0;
}

/* A small file goes with its head, in one write. */
static int send_body(Conn *c, int from, off_t at, unsigned long long n) {
    char buf[16384];
    if (n <= sizeof buf) {
        ssize_t k = gort_pread(from, buf, (size_t)n, at);
        if (k != (ssize_t)n) return k < 0 ? (int)k : -EIO;
        if ((k = gort_writer_write(c->out, buf, (size_t)n)) < 0) return (int)k;
        c->sent += n;
        return k == (ssize_t)n ? 0 : -ETIMEDOUT;
    }
    int r = conn_flush(c);
    return r < 0 ? r : send_file(c, from, at, n);
}

/* ---- conditions and ranges ------------------------------------------------------------------ */

#define DATE "%a, %d %b %Y %H:%M:%S GMT"

static bool same_or_newer(const char *since, time_t changed) {
    struct tm tm;
    const char *end = since ? strptime(since, DATE, &tm) : NULL;
    return end && *end == 0 && changed <= timegm(&tm);
}

/* "bytes=a-b", "bytes=a-", "bytes=-n": 206 or 416; whatever else it is: 200, all of it. */
static int range_of(const char *s, off_t size, off_t *first, off_t *last) {
    char *end;
    *first = 0;
    *last = size - 1;
    if (s == NULL || strncasecmp(s, "bytes=", 6) != 0 ||
        strspn(s + 6, "0123456789-") != strlen(s + 6))
        return 200;
    s += 6;
    if (*s == '-') {
        long long n = strtoll(s + 1, &end, 10);
        if (end == s + 1 || *end || n < 0) return 200;
        *first = n < size ? size - n : 0;
        return n > 0 && size > 0 ? 206 : 416;
    }
    long long from = strtoll(s, &end, 10);
    if (*end != '-') return 200;
    s = end + 1;
    long long to = *s ? strtoll(s, &end, 10) : size - 1;
    if ((*s && *end) || (*s && to < from)) return 200;
    *first = from;
    *last = to < size ? to : size - 1;
    return from < size ? 206 : 416;
}

static int send_regular(Conn *c, int fd, const struct stat *st, const char *path) {
    char date[64];
    struct tm tm;
    off_t first, last;
    int n, r;
    const char *only = head_field(&c->head, "If-Range", &n);
    strftime(date, sizeof date, DATE, gmtime_r(&st->st_mtime, &tm));
    const char *range = only && strcmp(only, date) != 0 ? NULL : head_field(&c->head, "Range", &n);
    int status = range_of(range, st->st_size, &first, &last);
    bool etags = head_field(&c->head, "If-None-Match", &n) != NULL;
    if (!etags && same_or_newer(head_field(&c->head, "If-Modified-Since", &n), st->st_mtime))
        status = 304;
    unsigned long long size = status == 416 ? 0 : (unsigned long long)(last - first + 1);
    if ((r = answer_begin(c, status, reason_of(status))) < 0) return r;
    gort_writer_printf(c->out, "Last-Modified: %s\r\nAccept-Ranges: bytes\r\n", date);
    if (status == 206)
        gort_writer_printf(c->out, "Content-Range: bytes %lld-%lld/%lld\r\n", (long long)first,
                           (long long)last, (long long)st->st_size);
    if (status == 416)
        gort_writer_printf(c->out, "Content-Range: bytes */%lld\r\n", (long long)st->st_size);
    if (status != 304)
        gort_writer_printf(c->out, "Content-Type: %s\r\nContent-Length: %llu\r\n", type_of(path),
                           size);
    ssize_t k = gort_writer_printf(c->out, "\r\n");
    if (k < 0) return (int)k;
    return status > 300 || strcmp(c->head.method, "HEAD") == 0 ? 0 : send_body(c, fd, first, size);
}

/* ---- directories ---------------------------------------------------------------------------- */

/* For an attribute and for text, or percent-encoded. */
static void put_escaped(FILE *f, const char *s, bool url) {
    for (; *s; s++) {
        bool plain = (*s >= '0' && *s <= '9') || ((*s | 32) >= 'a' && (*s | 32) <= 'z') ||
                     strchr("-._~/", *s);
        if (url && !plain) fprintf(f, "%%%02X", (unsigned char)*s);
        else if (strchr("<>&\"'", *s)) fprintf(f, "&#%d;", *s);
        else fputc(*s, f);
    }
}

typedef struct {
    int fd; /* in: the directory, which is closed */
    const char *path;
    char *text;
    size_t n;
} Listing;

static int visible(const struct dirent *e) { return e->d_name[0] != '.' && e->d_type != DT_LNK; }

static long list(void *arg) {
    Listing *l = arg;
    struct dirent **names;
    char dir[64];
    snprintf(dir, sizeof dir, "/proc/self/fd/%d", l->fd);
    int n = scandir(dir, &names, visible, alphasort);
    FILE *f = n < 0 ? NULL : open_memstream(&l->text, &l->n);
    if (f) fprintf(f, "<!doctype html><meta charset=utf-8><title>"), put_escaped(f, l->path, false);
    if (f) fprintf(f, "</title><ul>\n<li><a href=\"../\">../</a>\n");
    for (int i = 0; i < n; i++) {
        const char *slash = names[i]->d_type == DT_DIR ? "/" : "";
        if (f) fprintf(f, "<li><a href=\"./"), put_escaped(f, names[i]->d_name, true);
        if (f)
            fprintf(f, "%s\">", slash), put_escaped(f, names[i]->d_name, false),
                fprintf(f, "%s</a>\n", slash);
        free(names[i]);
    }
    if (n >= 0) free(names);
    return f && fclose(f) == 0 ? 0 : -ENOMEM;
}

static int send_directory(Conn *c, int fd, const char *path) {
    Listing l = {.fd = fd, .path = path};
    int r = gort_blocking(list, &l) < 0
                ? answer_error(c, 500)
                : answer_text(c, 200, "", "text/html; charset=utf-8", l.text, l.n);
    free(l.text);
    return r;
}

/* Encoded anew, so that no target can make it a line or another host. */
static int send_redirect(Conn *c, const char *path) {
    char *field = NULL;
    size_t n;
    FILE *f = open_memstream(&field, &n);
    if (f == NULL) return answer_error(c, 500);
    fprintf(f, "Location: ");
    put_escaped(f, path, true);
    fprintf(f, "/\r\n");
    int r = fclose(f) == 0 ? answer_text(c, 301, field, "text/plain", "", 0) : answer_error(c, 500);
    free(field);
    return r;
}

static int send_open(Conn *c, Open *o, const char *path) {
    size_t n = strlen(path);
    if (S_ISREG(o->st.st_mode) && path[n - 1] != '/') return send_regular(c, o->fd, &o->st, path);
    if (!S_ISDIR(o->st.st_mode)) return answer_error(c, 404);
    if (path[n - 1] != '/') return send_redirect(c, path);
    Open index = {.root = o->fd, .path = "/index.html"};
    gort_blocking(open_file, &index);
    int r = index.fd >= 0 && S_ISREG(index.st.st_mode)
                ? send_regular(c, index.fd, &index.st, ".html")
                : send_directory(c, o->fd, path);
    if (index.fd >= 0) gort_close(index.fd);
    return r;
}

int file_answer(Conn *c) {
    char path[MAX_LINE];
    if (strcmp(c->head.method, "GET") != 0 && strcmp(c->head.method, "HEAD") != 0)
        return answer_error(c, 405);
    if (!decode(c->head.target, path, sizeof path) || !resolve(path)) return answer_error(c, 400);
    Open o = {.root = options.root_fd, .path = path};
    gort_enter_syscall();
    open_file(&o);
    gort_exit_syscall();
    if (o.fd == -EMFILE || o.fd == -ENFILE || o.fd == -ENOMEM) return answer_error(c, 503);
    if (o.fd == -EACCES) return answer_error(c, 403);
    if (o.fd < 0) return answer_error(c, 404);
    int r = o.result < 0 ? answer_error(c, 500) : send_open(c, &o, path);
    gort_close(o.fd);
    return r;
}
