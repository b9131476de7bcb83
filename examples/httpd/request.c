/*
 * What a peer sends. Everything that two servers could understand in two ways is refused: a space
 * before a colon, a folded line, a control character, two lengths, a length beside chunks. That is
 * how requests are smuggled through a proxy.
 */
#include "httpd.h"

static bool is_token(const char *s) {
    return *s && s[strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == 0;
}

/* No control characters but tabs; the length finds a NUL. */
static bool is_text(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 32 && s[i] != '\t') || s[i] == 127) return false;
    return true;
}

/* The next line, copied into the head: 0, a status, or an error. */
static int head_line(gort_reader *in, Head *h, char **line) {
    char *text;
    ssize_t n = gort_reader_line(in, &text);
    if (n == -EMSGSIZE) return h->used == 0 ? 414 : 431;
    if (n < 0) return (int)n;
    if (!is_text(text, (size_t)n)) return 400;
    if (h->used + (size_t)n + 1 > sizeof h->text) return 431;
    *line = memcpy(h->text + h->used, text, (size_t)n + 1);
    h->used += (size_t)n + 1;
    return 0;
}

static char *split(char *s, char at) {
    char *end = strchr(s, at);
    if (end) *end++ = 0;
    return end;
}

/* "HTTP/1.0" or "HTTP/1.1": -1: neither. */
static int minor_of(const char *version) {
    if (strncmp(version, "HTTP/1.", 7) != 0 || (version[7] != '0' && version[7] != '1')) return -1;
    return version[8] ? -1 : version[7] - '0';
}

static int request_line(Head *h, char *line) {
    char *version;
    h->method = line;
    if (!(h->target = split(line, ' ')) || !(version = split(h->target, ' '))) return 400;
    if (!is_token(h->method) || strchr(h->target, '\t')) return 400;
    if ((h->minor = minor_of(version)) < 0) return strncmp(version, "HTTP/", 5) ? 400 : 505;
    if (strncasecmp(h->target, "http://", 7) == 0) { /* to a proxy: the host is a field, too */
        h->target = strchr(h->target + 7, '/');
        if (h->target == NULL) return 400;
    }
    return h->target[0] == '/' ? 0 : 400;
}

static int status_line(Head *h, char *line) {
    char *code = split(line, ' ');
    if (code == NULL || (h->minor = minor_of(line)) < 0) return 502;
    h->reason = split(code, ' ');
    if (h->reason == NULL) h->reason = code + strlen(code);
    h->status = atoi(code);
    return strlen(code) == 3 && h->status >= 100 && h->status <= 599 ? 0 : 502;
}

static int field_line(Head *h, char *line) {
    char *value = split(line, ':');
    if (value == NULL || !is_token(line)) return 400; /* a folded line, too, and "name :" */
    if (h->fields == MAX_FIELDS) return 431;
    value += strspn(value, " \t");
    for (size_t n = strlen(value); n > 0 && strchr(" \t", value[n - 1]); n--) value[n - 1] = 0;
    h->field[h->fields++] = (Field){line, value};
    return 0;
}

int head_read(gort_reader *in, Head *h, bool answer) {
    char *line;
    h->fields = 0;
    h->used = 0;
    int r = head_line(in, h, &line);
    if (r == 0 && *line == 0 && !answer) r = head_line(in, h, &line); /* one empty line before it */
    if (r == 0) r = answer ? status_line(h, line) : request_line(h, line);
    if (r != 0) return r;
    if (!answer) gort_reader_deadline(in, gort_now() + options.head);
    while ((r = head_line(in, h, &line)) == 0 && *line)
        if ((r = field_line(h, line)) != 0) return r;
    if (r != 0 || answer) return r;
    int hosts;
    head_field(h, "Host", &hosts);
    return hosts > 1 || (hosts == 0 && h->minor == 1) ? 400 : 0;
}

const char *head_field(const Head *h, const char *name, int *n) {
    const char *value = NULL;
    *n = 0;
    for (int i = 0; i < h->fields; i++)
        if (strcasecmp(h->field[i].name, name) == 0) value = h->field[i].value, ++*n;
    return value;
}

/* Is the word in the list "a, b, c"? */
bool list_has(const char *list, const char *word) {
    size_t n = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,");
        size_t k = strcspn(list, " \t,");
        if (k == n && strncasecmp(list, word, n) == 0) return true;
        list += k;
    }
    return false;
}

/* Digits and nothing else; false: also where it is too large. */
static bool number_of(const char *s, int base, unsigned long long *n) {
    size_t digits = strspn(s, base == 16 ? "0123456789abcdefABCDEF" : "0123456789");
    if (digits == 0 || digits > 15 || s[digits]) return false;
    *n = strtoull(s, NULL, base);
    return true;
}

int body_begin(Body *b, const Head *h, bool answer) {
    int lengths, codings;
    const char *length = head_field(h, "Content-Length", &lengths);
    const char *coding = head_field(h, "Transfer-Encoding", &codings);
    *b = (Body){.kind = answer ? TO_THE_END : NO_BODY, .over = !answer};
    if (lengths > 1 || codings > 1 || (lengths && codings)) return 400;
    if (codings) {
        if (h->minor == 0) return 400;
        if (strcasecmp(coding, "chunked") != 0) return 501;
        *b = (Body){.kind = CHUNKED};
    } else if (lengths) {
        *b = (Body){.kind = LENGTH};
        if (!number_of(length, 10, &b->left)) return 400;
        if (!answer && b->left > options.body) return 413;
        b->over = b->left == 0;
    }
    return 0;
}

/* What a reader's end means here. */
static ssize_t line_error(ssize_t n) {
    return n == -ENODATA ? -ECONNRESET : n == -EMSGSIZE ? -EBADMSG : n;
}

/* The size of the next chunk; after the last one the trailers go. */
static ssize_t chunk_begin(Body *b, gort_reader *in) {
    char *line;
    ssize_t n;
    if (b->total > 0 && (n = gort_reader_line(in, &line)) != 0) /* the end of the one before */
        return n > 0 ? -EBADMSG : line_error(n);
    if ((n = gort_reader_line(in, &line)) < 0) return line_error(n);
    if (!is_text(line, (size_t)n)) return -EBADMSG;
    line[strcspn(line, "; \t")] = 0;
    if (!number_of(line, 16, &b->left)) return -EBADMSG;
    for (int i = 0; b->left == 0 && !b->over; i++) {
        if ((n = gort_reader_line(in, &line)) < 0) return line_error(n);
        if (i > MAX_FIELDS) return -EBADMSG;
        b->over = n == 0;
    }
    return 0;
}

ssize_t body_read(Body *b, gort_reader *in, char *buf, size_t n, int64_t patience) {
    ssize_t r = 0;
    gort_reader_deadline(in, gort_now() + patience);
    if (!b->over && b->kind == CHUNKED && b->left == 0) r = chunk_begin(b, in);
    if (r < 0 || b->over) return r;
    if (b->kind != TO_THE_END && n > b->left) n = b->left;
    if ((r = gort_reader_read(in, buf, n)) < 0) return r;
    if (r == 0 && b->kind != TO_THE_END) return -ECONNRESET;
    if (b->kind != TO_THE_END) b->left -= (size_t)r;
    b->total += (size_t)r;
    if (r == 0 || (b->kind == LENGTH && b->left == 0)) b->over = true;
    return r;
}
