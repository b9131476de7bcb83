/*
 * The way to the other server. A request and its answer go over a connection of their own, in both
 * directions at once: a server may answer before it has read the body. What is passed on is what
 * was understood: heads are written anew, without the fields that are for one hop, and bodies keep
 * their length or their chunks.
 */
#include "httpd.h"

static bool for_one_hop(const Head *h, const char *name) {
    static const char *const hop = "connection, keep-alive, proxy-connection, proxy-authenticate, "
                                   "proxy-authorization, te, trailer, transfer-encoding, upgrade, "
                                   "content-length, expect, date";
    if (list_has(hop, name)) return true;
    for (int i = 0; i < h->fields; i++)
        if (strcasecmp(h->field[i].name, "Connection") == 0 && list_has(h->field[i].value, name))
            return true;
    return false;
}

static void put_fields(gort_writer *out, const Head *h) {
    for (int i = 0; i < h->fields; i++)
        if (!for_one_hop(h, h->field[i].name))
            gort_writer_printf(out, "%s: %s\r\n", h->field[i].name, h->field[i].value);
}

/* How the body will be framed; then the head is over. */
static void put_framing(gort_writer *out, const Body *b) {
    if (b->kind == LENGTH) gort_writer_printf(out, "Content-Length: %llu\r\n\r\n", b->left);
    else if (b->kind == CHUNKED) gort_writer_printf(out, "Transfer-Encoding: chunked\r\n\r\n");
    else gort_writer_printf(out, "\r\n");
}

/* The body `b` from one side, framed as `as` says, to the other. < 0: an error, *of the reader's
 * side or not. */
static int pass_body(gort_reader *in, Body *b, gort_writer *out, int as, unsigned long long most,
                     bool *readers, unsigned long long *passed) {
    char buf[16384];
    ssize_t n = 0, r = 0;
    while (r >= 0 && !b->over) {
        *readers = true;
        n = body_read(b, in, buf, sizeof buf, options.idle);
        if (n < 0 || b->total > most) return n < 0 ? (int)n : -EFBIG;
        *readers = false;
        gort_writer_deadline(out, gort_now() + options.write);
        if (n == 0) continue;
        if (as == CHUNKED) r = gort_writer_printf(out, "%zx\r\n", (size_t)n);
        if (r >= 0 && (r = gort_writer_write(out, buf, (size_t)n)) >= 0 && r != n) r = -EPIPE;
        if (r >= 0 && as == CHUNKED) r = gort_writer_write(out, "\r\n", 2);
        if (r >= 0) r = gort_writer_flush(out);
        *passed += (size_t)n;
    }
    if (r >= 0 && as == CHUNKED) r = gort_writer_write(out, "0\r\n\r\n", 5);
    return r < 0 ? (int)r : gort_writer_flush(out);
}

typedef struct {
    Conn *c;
    int fd;
    gort_reader *in;
    gort_writer *out;
    Head head;
    Body body;
    int upload; /* how the request's body has ended */
    bool of_client;
    gort_wg wg;
} Exchange;

/* The request's body, beside the answer. */
static void upload(void *arg) {
    Exchange *x = arg;
    unsigned long long n = 0;
    gort_ctx_use(x->c->ctx); /* not inherited */
    x->upload =
        pass_body(x->c->in, &x->c->body, x->out, x->c->body.kind, options.body, &x->of_client, &n);
    if (x->upload < 0)
        gort_shutdown(x->fd, SHUT_RDWR); /* no answer will come, or none that counts */
}

static int send_request(Exchange *x) {
    Conn *c = x->c;
    int n;
    gort_writer_deadline(x->out, gort_now() + options.write);
    gort_writer_printf(x->out, "%s %s HTTP/1.1\r\n", c->head.method, c->head.target);
    put_fields(x->out, &c->head);
    if (head_field(&c->head, "Host", &n) == NULL)
        gort_writer_printf(x->out, "Host: %s\r\n", options.upstream);
    gort_writer_printf(x->out, "Connection: close\r\nX-Forwarded-For: %.*s\r\n",
                       (int)(strrchr(c->peer, ':') ? strrchr(c->peer, ':') - c->peer : 0), c->peer);
    put_framing(x->out, &c->body);
    int r = gort_writer_flush(x->out);
    if (r < 0 || c->body.kind == NO_BODY) return r;
    const char *expects = head_field(&c->head, "Expect", &n);
    if (expects && strcasecmp(expects, "100-continue") == 0 && c->head.minor == 1) {
        gort_writer_printf(c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        if ((r = conn_flush(c)) < 0) return r;
    }
    return gort_wg_go(&x->wg, upload, x);
}

/* The patience with the server begins when it has the whole request. */
static int await_answer(Exchange *x) {
    struct pollfd p = {.fd = x->fd, .events = POLLIN};
    int r;
    do r = gort_poll_until(&p, 1, gort_now() + options.idle);
    while (r == -ETIMEDOUT && gort_wg_wait_until(&x->wg, 0) < 0);
    return r;
}

/* The head of the answer, after any 1xx: 0, or the status to tell the client. */
static int read_answer(Exchange *x) {
    int r = await_answer(x);
    if (r < 0) return r == -ETIMEDOUT ? 504 : 502;
    do {
        gort_reader_deadline(x->in, gort_now() + options.idle);
        r = head_read(x->in, &x->head, true);
        if (r != 0) return r == -ETIMEDOUT ? 504 : 502;
    } while (x->head.status < 200);
    return body_begin(&x->body, &x->head, true) == 0 ? 0 : 502;
}

static int pass_answer(Exchange *x) {
    Conn *c = x->c;
    bool upstreams = false;
    int as = x->body.kind, status = x->head.status;
    bool none = strcmp(c->head.method, "HEAD") == 0 || status == 204 || status == 304;
    if (as == TO_THE_END || as == CHUNKED) as = c->head.minor == 1 ? CHUNKED : TO_THE_END;
    if (as == TO_THE_END && !none) c->keep = false;
    int r = answer_begin(c, status, x->head.reason);
    put_fields(c->out, &x->head);
    Body framing = {.kind = as, .left = x->body.left};
    if (status == 204 || (none && as != LENGTH)) framing.kind = NO_BODY;
    put_framing(c->out, &framing);
    if (none) x->body.over = true;
    if (r < 0 || (r = conn_flush(c)) < 0 || none) return r;
    return pass_body(x->in, &x->body, c->out, as, ~0ull, &upstreams, &c->sent);
}

static int exchange(Exchange *x) {
    int r = send_request(x);
    int status = r < 0 ? 502 : read_answer(x);
    if (status == 0) r = pass_answer(x);
    if (gort_wg_wait_until(&x->wg, 0) < 0) { /* the rest of the body is not wanted */
        gort_shutdown(x->fd, SHUT_RDWR);
        gort_shutdown(x->c->fd, SHUT_RD);
    }
    gort_wg_wait(&x->wg);
    if (status || !x->c->body.over) x->c->keep = false;
    if (status == 0 || x->c->begun) return r;
    if (x->upload < 0 && x->of_client)
        status = x->upload == -EFBIG ? 413 : x->upload == -ETIMEDOUT ? 408 : 400;
    return answer_error(x->c, status);
}

int proxy_answer(Conn *c) {
    Exchange *x = calloc(1, sizeof *x);
    if (x == NULL) return answer_error(c, 503);
    x->c = c;
    x->fd = gort_dial(options.upstream, gort_now() + options.head);
    if (x->fd < 0) tell_unreached(options.upstream, x->fd);
    x->in = gort_reader_new(x->fd, MAX_LINE);
    x->out = gort_writer_new(x->fd, 0);
    int r = x->fd < 0           ? answer_error(c, x->fd == -ETIMEDOUT ? 504 : 502)
            : !x->in || !x->out ? answer_error(c, 503)
                                : exchange(x);
    gort_reader_free(x->in);
    gort_writer_free(x->out);
    if (x->fd >= 0) gort_close(x->fd);
    free(x);
    return r;
}
