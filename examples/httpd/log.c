/*
 * The access log: a line for each request goes through a channel to one goroutine, which writes
 * what has come together. A request never waits for the disk: a line that finds no room is dropped
 * and counted. And the figures, in the format of Prometheus.
 */
#include "httpd.h"

#include <fcntl.h>
#include <time.h>

typedef struct {
    char text[400];
} Line;
GORT_CHAN_TYPE(lines, Line)

Figures figures;
static lines *log_lines;
static gort_wg logging;

static void write_lines(void *arg) {
    gort_writer *out = arg;
    Line l;
    while (lines_recv(log_lines, &l) == 0) {
        do gort_writer_write(out, l.text, strlen(l.text));
        while (lines_try_recv(log_lines, &l) == 0);
        if (gort_writer_flush(out) < 0) COUNT(not_logged, 1);
    }
    gort_writer_free(out);
}

int log_open(const char *path) {
    int fd = strcmp(path, "-") == 0
                 ? 1
                 : gort_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    gort_writer *out = fd < 0 ? NULL : gort_writer_new(fd, 0);
    if (out == NULL) return fd < 0 ? fd : -ENOMEM;
    log_lines = lines_new(1024);
    return log_lines ? gort_wg_go(&logging, write_lines, out) : -ENOMEM;
}

/* Quotes and control characters of a client do not forge lines. */
static void clean(char *s) {
    for (; *s; s++)
        if (*s == '"' || *s == '\\' || (unsigned char)*s < 32 || *s == 127) *s = '?';
}

void log_request(const Conn *c, int64_t began) {
    char method[32], target[200], date[40];
    struct tm tm;
    time_t now = time(NULL);
    Line l;
    COUNT(requests, 1);
    COUNT(by_class[c->status / 100 % 6], 1);
    COUNT(bytes, c->sent);
    snprintf(method, sizeof method, "%s", c->head.method ? c->head.method : "-");
    snprintf(target, sizeof target, "%s", c->head.target ? c->head.target : "-");
    clean(method), clean(target);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    snprintf(l.text, sizeof l.text, "%s %s \"%s %s\" %d %llu %lld us\n", c->peer, date, method,
             target, c->status, c->sent, (long long)((gort_now() - began) / GORT_US));
    if (log_lines && lines_try_send(log_lines, l) < 0) COUNT(not_logged, 1);
}

void log_close(void) {
    if (log_lines == NULL) return;
    lines_close(log_lines);
    gort_wg_wait(&logging);
}

#define NOW(what) __atomic_load_n(&figures.what, __ATOMIC_RELAXED)

int metrics_answer(Conn *c) {
    char text[2048];
    gort_stats s;
    gort_stats_read(&s);
    int n = snprintf(
        text, sizeof text,
        "httpd_requests_total{class=\"2xx\"} %llu\nhttpd_requests_total{class=\"3xx\"} %llu\n"
        "httpd_requests_total{class=\"4xx\"} %llu\nhttpd_requests_total{class=\"5xx\"} %llu\n"
        "httpd_body_bytes_total %llu\nhttpd_connections_total %llu\nhttpd_connections_open %llu\n"
        "httpd_connections_refused_total %llu\nhttpd_log_lines_dropped_total %llu\n"
        "httpd_goroutines %llu\nhttpd_threads %llu\n",
        NOW(by_class[2]), NOW(by_class[3]), NOW(by_class[4]), NOW(by_class[5]), NOW(bytes),
        NOW(connections), NOW(open), NOW(refused), NOW(not_logged),
        (unsigned long long)s.goroutines, (unsigned long long)s.threads);
    return answer_text(c, 200, "", "text/plain; version=0.0.4", text, (size_t)n);
}
