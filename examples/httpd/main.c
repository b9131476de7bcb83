/*
 * Options (`usage` lists them), connections, and the shutdown.
 *
 * It serves the files below ROOT; what begins with PREFIX goes to the server at ADDRESS; /-/metrics
 * are the figures. LOG is a file, or "-". CONNECTIONS at a time, a request's body of BODY bytes. A
 * connection may be IDLE for so many seconds, a head takes HEAD, a client that takes nothing for
 * WRITE is left. On SIGTERM and SIGINT it accepts no more, ends what is idle, lets the requests
 * that run come to their end, for GRACE seconds, and returns: 0, or 3 where it has cut some off.
 */
#define _GNU_SOURCE
#include "httpd.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

Options options = {
    "127.0.0.1:8080", ".",           NULL,          NULL,          NULL,    -1, 10000,
    60 * GORT_SEC,    10 * GORT_SEC, 30 * GORT_SEC, 10 * GORT_SEC, 64 << 20};
static gort_ctx *draining, *all; /* no new requests; nothing at all any more */

const char *reason_of(int status) {
    switch (status) {
    case 200: return "OK";
    case 206: return "Partial Content";
    case 301: return "Moved Permanently";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 416: return "Range Not Satisfiable";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    }
    return "Unknown";
}

/* ---- answers -------------------------------------------------------------------------------- */

int conn_flush(Conn *c) {
    gort_writer_deadline(c->out, gort_now() + options.write);
    return gort_writer_flush(c->out);
}

/* Errors of the writer show at its next flush. */
int answer_begin(Conn *c, int status, const char *reason) {
    char date[64];
    struct tm tm;
    time_t now = time(NULL);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
    c->status = status;
    c->begun = true;
    if (gort_ctx_err(draining)) c->keep = false;
    gort_writer_deadline(c->out, gort_now() + options.write);
    ssize_t r = gort_writer_printf(c->out, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s", status, reason, date,
                                   !c->keep             ? "Connection: close\r\n"
                                   : c->head.minor == 0 ? "Connection: keep-alive\r\n"
                                                        : "");
    return r < 0 ? (int)r : 0;
}

int answer_text(Conn *c, int status, const char *more_fields, const char *type, const char *text,
                size_t n) {
    int r = answer_begin(c, status, reason_of(status));
    if (r < 0) return r;
    ssize_t k = gort_writer_printf(c->out, "%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                                   more_fields, type, n);
    if (k >= 0 && !(c->head.method && strcmp(c->head.method, "HEAD") == 0)) {
        k = gort_writer_write(c->out, text, n);
        c->sent += n;
    }
    return k < 0 ? (int)k : 0;
}

int answer_error(Conn *c, int status) {
    char text[100];
    int n = snprintf(text, sizeof text, "%d %s\n", status, reason_of(status));
    return answer_text(c, status, status == 405 ? "Allow: GET, HEAD\r\n" : "", "text/plain", text,
                       (size_t)n);
}

/* ---- a connection --------------------------------------------------------------------------- */

static bool keeps(const Head *h) {
    bool keep = h->minor == 1;
    for (int i = 0; i < h->fields; i++) {
        if (strcasecmp(h->field[i].name, "Connection") != 0) continue;
        if (list_has(h->field[i].value, "close")) return false;
        keep |= list_has(h->field[i].value, "keep-alive");
    }
    return keep;
}

/* What nobody has read of the body goes, so that the next request begins behind it. */
static int skip_body(Conn *c) {
    char buf[16384];
    ssize_t n = 1;
    while (!c->body.over && n >= 0 && c->body.total <= options.body)
        n = body_read(&c->body, c->in, buf, sizeof buf, options.head);
    return c->body.over ? 0 : -EFBIG;
}

static int respond(Conn *c) {
    const char *target = c->head.target;
    int r;
    c->keep = keeps(&c->head);
    if ((r = body_begin(&c->body, &c->head, false)) != 0) return r;
    if (options.prefix && strncmp(target, options.prefix, strlen(options.prefix)) == 0)
        return proxy_answer(c);
    if (c->body.kind != NO_BODY && head_field(&c->head, "Expect", &r))
        c->keep = false; /* it may not come */
    r = strcmp(target, "/-/metrics") == 0 ? metrics_answer(c) : file_answer(c);
    if (r == 0 && c->keep && (r = conn_flush(c)) == 0 && skip_body(c) < 0) c->keep = false;
    return r;
}

/* One request and its answer. false: it was the last. */
static bool turn(Conn *c) {
    c->keep = c->begun = false;
    c->sent = 0;
    c->body.over = true;
    c->head.method = c->head.target = NULL;
    c->head.minor = 1;
    gort_reader_deadline(c->in, gort_now() + options.idle);
    gort_ctx_use(draining); /* who is idle then is not waited for */
    int r = head_read(c->in, &c->head, false);
    gort_ctx_use(c->ctx);
    int64_t began = gort_now();
    if (r == -ETIMEDOUT && c->head.used > 0) r = 408;
    if (r == 0) r = respond(c);
    if (r < 0 && !c->begun) return false;
    if (r > 0) c->keep = false, r = answer_error(c, r);
    if (r >= 0) r = conn_flush(c);
    log_request(c, began);
    return r >= 0 && c->keep;
}

/* A close with bytes unread is a reset, and the client would lose the answer with it. */
static void linger(Conn *c) {
    char buf[4096];
    int64_t until = gort_now() + 2 * GORT_SEC;
    if (gort_shutdown(c->fd, SHUT_WR) < 0) return;
    for (int i = 0; i < 256 && gort_read_until(c->fd, buf, sizeof buf, until) > 0; i++) {}
}

static int serve(gort_ctx *ctx, void *arg) {
    Conn *c = arg;
    int one = 1; /* what gort_dial does: a head and its body may be two writes */
    COUNT(open, 1);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->ctx = ctx;
    c->in = gort_reader_new(c->fd, MAX_LINE);
    c->out = gort_writer_new(c->fd, 0);
    if (gort_peer_addr(c->fd, c->peer, sizeof c->peer) < 0) strcpy(c->peer, "?");
    if (c->in && c->out) {
        while (turn(c)) {}
        if (c->begun && (c->status >= 400 || !c->body.over)) linger(c);
    }
    gort_reader_free(c->in);
    gort_writer_free(c->out);
    gort_close(c->fd);
    free(c);
    COUNT(open, -1ull);
    return 0;
}

static void refuse(int fd) {
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                               "Content-Length: 0\r\nRetry-After: 1\r\n\r\n";
    COUNT(refused, 1);
    gort_send(fd, text, sizeof text - 1, MSG_DONTWAIT);
    gort_close(fd);
}

/* Uses `draining`, which ends it. */
static void accept_all(int listener, gort_group *connections) {
    int fd;
    while ((fd = gort_accept(listener, NULL, NULL)) != -ECANCELED) {
        Conn *c = fd < 0 ? NULL : malloc(sizeof *c);
        if (c) memset(c, 0, offsetof(Conn, head)), c->fd = fd;
        if (c && gort_group_try_go(connections, serve, c) == 0) {
            COUNT(connections, 1);
            continue;
        }
        free(c);
        if (fd >= 0) refuse(fd);
        else gort_sleep(10 * GORT_MS); /* no descriptors: it waits in the queue */
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void on_signal(void *arg) {
    gort_chan_recv(arg, NULL);
    gort_ctx_cancel(draining);
}

static void out_of_patience(void *arg) {
    (void)arg;
    gort_ctx_cancel(all);
}

static const char usage[] =
    "usage: httpd [-l ADDRESS] [-r ROOT] [-p PREFIX=ADDRESS] [-a LOG] [-c CONNECTIONS] [-b BODY]\n"
    "             [-i IDLE] [-h HEAD] [-w WRITE] [-g GRACE]    the last four in seconds\n";

/* The argument of an option: the whole of it is a number, from least to most. */
static bool read_number(int option, double least, double most, double *n) {
    char *end;
    *n = strtod(optarg, &end);
    if (end != optarg && *end == 0 && *n >= least && *n <= most) return true;
    fprintf(stderr, "httpd: -%c %s: not a number from %g to %g\n", option, optarg, least, most);
    return false;
}

static bool read_options(int argc, char **argv) {
    for (int o; (o = getopt(argc, argv, "l:r:p:a:c:b:i:h:w:g:")) != -1;) {
        double n = 0;
        if (strchr("cbihwg", o) && !read_number(o, o == 'c', o == 'b' ? 1e15 : 1e9, &n))
            return false;
        int64_t seconds = (int64_t)(n * (double)GORT_SEC);
        switch (o) {
        case 'l': options.address = optarg; break;
        case 'r': options.root = optarg; break;
        case 'p':
            options.prefix = optarg;
            options.upstream = strchr(optarg, '=');
            if (options.upstream == NULL)
                return fprintf(stderr, "httpd: -p %s: no \"=\" in it\n", optarg), false;
            *(char *)options.upstream++ = 0;
            break;
        case 'a': options.log = optarg; break;
        case 'c': options.connections = (int)n; break;
        case 'b': options.body = (unsigned long long)n; break;
        case 'i': options.idle = seconds; break;
        case 'h': options.head = seconds; break;
        case 'w': options.write = seconds; break;
        case 'g': options.grace = seconds; break;
        default: return false;
        }
    }
    if (optind < argc) fprintf(stderr, "httpd: %s: no option\n", argv[optind]);
    return optind == argc;
}

static int fail(const char *what, int err) {
    return fprintf(stderr, "httpd: %s: %s\n", what, strerror(-err)), 1;
}

void tell_unreached(const char *address, int err) {
    fprintf(stderr, "httpd: %s: %s\n", address, gort_addr_strerror(address, err));
}

static int run_until_told(int listener) {
    gort_chan *signals = gort_chan_new(sizeof(int), 1);
    gort_group *connections = gort_group_new(all, options.connections);
    int r = signals && connections ? gort_signal_notify(signals, SIGTERM) : -ENOMEM;
    if (r == 0) r = gort_signal_notify(signals, SIGINT);
    if (r == 0) r = gort_go(on_signal, signals);
    if (r < 0) return fail("start", r);
    gort_ctx_use(draining);
    accept_all(listener, connections);
    gort_ctx_use(NULL);
    gort_close(listener);
    gort_timer *patience = gort_timer_new(options.grace, out_of_patience, NULL);
    gort_group_wait(connections);
    gort_timer_free(patience);
    log_close();
    gort_signal_stop(signals);
    return gort_ctx_err(all) ? 3 : 0; /* 3: some were cut off */
}

static int run(int argc, char **argv) {
    char address[128];
    if (!read_options(argc, argv)) return fputs(usage, stderr), 2;
    options.root_fd = gort_open(options.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (options.root_fd < 0) return fail(options.root, options.root_fd);
    int listener = gort_listen(options.address, 0), r;
    if (listener < 0) return tell_unreached(options.address, listener), 1;
    if ((r = gort_local_addr(listener, address, sizeof address)) < 0) return fail("address", r);
    if (options.log && (r = log_open(options.log)) < 0) return fail(options.log, r);
    draining = gort_ctx_new(NULL);
    all = gort_ctx_new(NULL);
    if (draining == NULL || all == NULL) return fail("start", -ENOMEM);
    fprintf(stderr, "listening on http://%s/\n", address);
    return run_until_told(listener);
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
