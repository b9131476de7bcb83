/*
 * HTTP for the live page.
 *
 * The parser reads bytes from any peer, so it trusts nothing: every copy is bounded, lines are
 * found by memchr inside the bytes that arrived, and what does not fit or is not understood is
 * refused. It has no state and touches only its arguments (tests/unit/http.c, tests/fuzz/http.c).
 */
#include "inspect/http.h"
#include "base/deadline.h"
#include "inspect/page.h"

#define PATIENCE (10 * GORT_SEC)

typedef struct Text {
    const char *at;
    size_t n;
} Text;

static char http_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* word is in lower case; the case of s does not count. */
static bool text_is(Text s, const char *word) {
    if (s.n != strlen(word)) return false;
    for (size_t i = 0; i < s.n; i++)
        if (http_lower(s.at[i]) != word[i]) return false;
    return true;
}

static bool text_copy(char *to, size_t size, Text s) {
    if (s.n >= size || memchr(s.at, 0, s.n)) return false;
    memcpy(to, s.at, s.n);
    to[s.n] = 0;
    return true;
}

/* The text before the separator; *rest is what follows it. */
static Text text_cut(Text s, char separator, Text *rest) {
    const char *p = memchr(s.at, separator, s.n);
    if (p == NULL) {
        *rest = (Text){s.at + s.n, 0};
        return s;
    }
    *rest = (Text){p + 1, s.n - (size_t)(p - s.at) - 1};
    return (Text){s.at, (size_t)(p - s.at)};
}

static Text text_trim(Text s) {
    while (s.n && (*s.at == ' ' || *s.at == '\t')) s.at++, s.n--;
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t' || s.at[s.n - 1] == '\r')) s.n--;
    return s;
}

/* Decodes %xx and, in queries, '+'. False: too long, broken, or an encoded control character. */
static bool text_decode(Text s, char *to, size_t size, bool plus) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.at[i];
        if (c == '%') {
            if (i + 2 >= s.n || hex_digit(s.at[i + 1]) < 0 || hex_digit(s.at[i + 2]) < 0)
                return false;
            c = (char)(hex_digit(s.at[i + 1]) * 16 + hex_digit(s.at[i + 2]));
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if ((unsigned char)c < ' ' || c == 127 || n + 1 >= size) return false;
        to[n++] = c;
    }
    to[n] = 0;
    return true;
}

/* A header that access depends on: it may come once, and is copied in lower case. */
static bool copy_once(char *to, size_t size, Text s) {
    if (to[0] != 0 || s.n == 0 || !text_copy(to, size, s)) return false;
    for (; *to; to++) *to = http_lower(*to);
    return true;
}

static int parse_header(HttpRequest *r, Text line) {
    Text value, name = text_cut(line, ':', &value);
    if (name.n == line.n || name.n == 0) return 400;
    value = text_trim(value);
    if (text_is(name, "host") && !copy_once(r->host, sizeof r->host, value)) return 400;
    if (text_is(name, "origin") && !copy_once(r->origin, sizeof r->origin, value)) return 400;
    if (text_is(name, "sec-fetch-site") && !copy_once(r->site, sizeof r->site, value)) return 400;
    if (text_is(name, "accept")) r->wants_json = memmem(value.at, value.n, "application/json", 16);
    if (text_is(name, "content-length") && !text_is(value, "0")) return 413;
    if (text_is(name, "transfer-encoding")) return 413;
    if (text_is(name, "authorization") && value.n > 7 && memcmp(value.at, "Bearer ", 7) == 0 &&
        !text_copy(r->token, sizeof r->token, (Text){value.at + 7, value.n - 7}))
        return 400;
    return 0;
}

/* Of "http://authority/path" (RFC 9112, 3.2.2), which a proxy's client sends, target becomes the
 * path. False: it is neither this nor a path. */
static bool parse_target(HttpRequest *r, Text *target) {
    Text t = *target;
    if (t.n > 0 && t.at[0] == '/') return true;
    if (t.n < 7 || !text_is((Text){t.at, 7}, "http://")) return false;
    t = (Text){t.at + 7, t.n - 7};
    size_t n = 0;
    while (n < t.n && t.at[n] != '/' && t.at[n] != '?') n++;
    *target = (Text){t.at + n, t.n - n};
    return copy_once(r->authority, sizeof r->authority, (Text){t.at, n});
}

static int parse_first(HttpRequest *r, Text line) {
    Text rest, method = text_cut(line, ' ', &rest), version;
    Text target = text_cut(rest, ' ', &version), query;
    version = text_trim(version);
    if (version.n == 0 || !parse_target(r, &target)) return 400;
    if (!text_is(version, "http/1.1") && !text_is(version, "http/1.0")) return 505;
    if (!text_is(method, "get") && !text_is(method, "head")) return 405;
    r->head = text_is(method, "head");
    Text path = text_cut(target, '?', &query);
    if (path.n == 0) path = (Text){"/", 1};
    if (path.n >= sizeof r->path || query.n >= sizeof r->query) return 414;
    if (!text_decode(path, r->path, sizeof r->path, false) ||
        !text_copy(r->query, sizeof r->query, query))
        return 400;
    return 0;
}

int http_parse(const char *buf, size_t n, HttpRequest *r) {
    Text rest = {buf, n}, line;
    memset(r, 0, sizeof *r);
    int lines = 0;
    for (;; lines++) {
        if (memchr(rest.at, '\n', rest.n) == NULL) return n >= HTTP_HEAD ? 431 : 0;
        line = text_trim(text_cut(rest, '\n', &rest));
        if (line.n == 0) break;
        int e = lines == 0 ? parse_first(r, line) : parse_header(r, line);
        if (e) return e;
    }
    if (lines == 0) return 400;
    if (r->authority[0]) memcpy(r->host, r->authority, sizeof r->host);
    return 200;
}

static bool param_find(const HttpRequest *r, const char *name, Text *value) {
    Text rest = {r->query, strlen(r->query)};
    while (rest.n) {
        Text item = text_cut(rest, '&', &rest), key = text_cut(item, '=', value);
        if (word_is(key.at, key.n, name)) return true;
    }
    return false;
}

bool http_has(const HttpRequest *r, const char *name) {
    Text value;
    return param_find(r, name, &value);
}

bool http_param(const HttpRequest *r, const char *name, char *buf, size_t size) {
    Text value;
    return param_find(r, name, &value) && text_decode(value, buf, size, true);
}

uint64_t http_number(const HttpRequest *r, const char *name, uint64_t otherwise) {
    char text[24];
    uint64_t v = 0;
    Text value;
    if (!param_find(r, name, &value)) return otherwise;
    if (!text_decode(value, text, sizeof text, true) || text[0] == 0) return HTTP_NO_NUMBER;
    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s > '9' || v > UINT64_MAX / 16) return HTTP_NO_NUMBER;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    return v;
}

int http_send(int conn, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t r = page_write(conn, at, n, time_after(gort_now(), PATIENCE));
        if (r <= 0) return r < 0 ? (int)r : -EIO;
        at += r;
        n -= (size_t)r;
    }
    return 0;
}

static const char *status_words(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

int http_begin(int conn, int status, const char *type, const char *more) {
    char head[512];
    size_t n = print_buf(head, sizeof head,
                         "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n%s"
                         "Connection: close\r\n\r\n",
                         status, status_words(status), type, more);
    return http_send(conn, head, n);
}

int http_answer(int conn, const HttpRequest *r, int status, const char *type, const char *body,
                size_t n) {
    char more[128];
    print_buf(more, sizeof more, "Content-Length: %lu\r\nX-Content-Type-Options: nosniff\r\n%s", n,
              status == 405 ? "Allow: GET, HEAD\r\n" : "");
    int e = http_begin(conn, status, type, more);
    return e < 0 || (r && r->head) ? e : http_send(conn, body, n);
}
