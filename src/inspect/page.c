/*
 * The live page: gort_debug_listen, GORT_HTTP.
 *
 * Goroutines serve it: one accepts, one serves each connection (64 at most). They mark themselves
 * as the runtime's own, so that lists, groups, counts and reports leave them out. The pages:
 * routes[]. A trace or a profile ends when its client goes away; a trace also when it has
 * TRACE_MOST bytes, or, for the timeline, TIMELINE_MOST, so that a browser can draw it.
 *
 * Access. On a loopback address or a unix socket every client may look, except a page of another
 * site. Such a page can point a name of its own to this address: so the Host header must name this
 * listener, with its port. It can hold a link or a picture: so Sec-Fetch-Site and Origin must not
 * name another site. A browser too old to send these headers could still be made to start a trace
 * or a profile, so these need proof: a header which shows that the live page itself asks, or the
 * token. On any other address everything needs the token, which comes from GORT_HTTP_TOKEN or is
 * drawn at random and printed with the address. A given one is a secret of its owner's and is never
 * printed: stderr often goes to a log. Nothing can be changed: GET and HEAD only.
 *
 * Tables hold all descriptors: the end of the runtime closes them, when no goroutine runs any more.
 * Each enters its table in the section that makes it and leaves in the section that closes it, so
 * the end finds all of them, and no number that was reused. A trace and its file likewise. The
 * program may close any of them and reuse its number, so each entry knows its file (ownfd.h), and
 * is asked before every attempt to accept, read or write, and before it is closed.
 */
#include "inspect/trace_session.h"
#include "inspect/page.h"
#include "sync/houselock.h"
#include "debug/dump.h"
#include "base/env.h"
#include "sched/g.h"
#include "io/fdcall.h"
#include "io/net.h"
#include "debug/leak.h"
#include "debug/stats.h"
#include "inspect/profile.h"
#include "os/ownfd.h"
#include "base/sysfault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64
#define URL_SIZE 320
#define LISTENERS 8
#define TICK (250 * GORT_MS)
#define TRACE_MOST ((uint64_t)32 << 20) /* bytes of events */
#define TIMELINE_MOST ((uint64_t)2 << 20)

typedef struct Listener {
    OwnFd socket;
    bool open;       /* only traces and profiles need the token */
    bool drawn;      /* the token; else it was given */
    char local[300]; /* from gort_local_addr */
    char token[128];
} Listener;

static struct {
    Listener listeners[LISTENERS];
    uint32_t nlisteners;               /* atomic */
    uint32_t connections[CONNECTIONS]; /* atomic: 0: the place is free */
    OwnFd sockets[CONNECTIONS];        /* the listener's goroutine, then the connection's */
    OwnFd accepted[LISTENERS];         /* the listener's goroutine: not in sockets yet */
    OwnFd files[CONNECTIONS];          /* the connection's goroutine: the trace it sends */
    Listener *from[CONNECTIONS]; /* the listener's goroutine, before the connection's begins */
    uint32_t traces;             /* atomic: the page started the running trace */
} page;

Program page_program;
static const gort_attr page_attr = {.name = "gort: live page"};

/* The caller serves the page. */
static void mark_own(void) {
    M *m = enter();
    m->curg->flags |= GF_SYSTEM;
    leave(m);
}

uint64_t page_own_count(void) {
    uint64_t n = load_rlx(&page.nlisteners);
    for (int i = 0; i < CONNECTIONS; i++) n += load_rlx(&page.connections[i]);
    return n;
}

/* ---- which requests are answered ------------------------------------------------------------- */

static bool same_secret(const char *a, const char *b) {
    size_t n = strlen(b);
    unsigned char diff = (unsigned char)(strlen(a) != n);
    for (size_t i = 0; i < n && a[i]; i++) diff |= (unsigned char)(a[i] ^ b[i]);
    return diff == 0; /* takes as long wherever they differ */
}

/* "name:port"; a port of 80 may be left out. */
static bool is_host(const char *host, const char *name, const char *port) {
    if (!begins_with(host, name)) return false;
    host += strlen(name);
    return host[0] == ':' ? strcmp(host + 1, port) == 0 : host[0] == 0 && strcmp(port, "80") == 0;
}

/* Does Host name this listener? A browser always sends it, and never uses a unix socket. */
static bool means_this(const Listener *l, const char *host) {
    const char *port = strrchr(l->local, ':');
    if (host[0] == 0 || begins_with(l->local, "unix:")) return true;
    if (port == NULL) return false;
    port++;
    return strcmp(host, l->local) == 0 || is_host(host, "localhost", port) ||
           is_host(host, "127.0.0.1", port) || is_host(host, "[::1]", port);
}

static bool has_token(const Listener *l, const HttpRequest *r) {
    char token[128];
    if (r->token[0] && same_secret(r->token, l->token)) return true;
    return http_param(r, "token", token, sizeof token) && same_secret(token, l->token);
}

static bool same_origin(const HttpRequest *r) {
    return begins_with(r->origin, "http://") && r->host[0] && strcmp(r->origin + 7, r->host) == 0;
}

/* 0, or the status to refuse with. */
static int refuse(const Listener *l, const HttpRequest *r, bool costs) {
    bool ours = strcmp(r->site, "same-origin") == 0 || strcmp(r->site, "none") == 0;
    /* a page of another site asks: it may link to our page "/" */
    bool foreign =
        (r->site[0] && !ours && strcmp(r->path, "/") != 0) || (r->origin[0] && !same_origin(r));
    /* the live page itself asks, or the browser's user */
    bool own = r->site[0] ? ours : same_origin(r);
    if (has_token(l, r)) return 0;
    if (!l->open) return 401;
    if (!means_this(l, r->host) || foreign) return 403;
    return costs && !own ? 401 : 0;
}

static void draw_token(char *to, size_t size) {
    unsigned char bytes[16];
    size_t got = 0;
    while (got < sizeof bytes) {
        long r = os_sys(SYS_getrandom, (long)(bytes + got), (long)(sizeof bytes - got), 0, 0, 0, 0);
        if (r < 0 && r != -EINTR)
            fatal("no random numbers for the live page's token: %s", errno_word(r));
        if (r > 0) got += (size_t)r;
    }
    for (int i = 0; i < 16; i++) print_buf(to + 2 * i, size - 2 * (size_t)i, "%02x", bytes[i]);
}

/* 0; -EINVAL: GORT_HTTP_TOKEN is too long. */
static int get_token(Listener *l) {
    const char *given = env_get("GORT_HTTP_TOKEN");
    size_t n = given ? strlen(given) : 0;
    if (n >= sizeof l->token) {
        print_fd(2, "gort: GORT_HTTP_TOKEN is longer than %d bytes\n", (int)sizeof l->token - 1);
        return -EINVAL;
    }
    l->drawn = n == 0;
    if (l->drawn) draw_token(l->token, sizeof l->token);
    else memcpy(l->token, given, n + 1);
    return 0;
}

/* ---- what is served -------------------------------------------------------------------------- */

#define PLAIN_TEXT "text/plain; charset=utf-8"
#define JSON "application/json"

static void answer_text(int conn, const HttpRequest *r, int status, const char *text) {
    http_answer(conn, r, status, "text/plain", text, strlen(text));
}

/* Sends and frees what o holds. */
static void answer_out(int conn, const HttpRequest *r, const char *type, Out *o) {
    if (o->failed) answer_text(conn, r, 503, "no memory\n");
    else http_answer(conn, r, 200, type, o->buf ? o->buf : "", o->used);
    free(o->buf);
}

static bool format_is(const HttpRequest *r, const char *word) {
    char format[16];
    return http_param(r, "format", format, sizeof format) && strcmp(format, word) == 0;
}

/* Has a trace or a profile begun? e: 0, or the error, which is answered. */
static bool has_begun(int conn, const HttpRequest *r, int e) {
    if (e == -EBUSY) answer_text(conn, r, 409, "another one is running\n");
    else if (e == -ENOTSUP)
        answer_text(conn, r, 409, "no CPU profile: with signal=prof the scheduler has SIGPROF\n");
    else if (e < 0) answer_text(conn, r, 503, "no memory, or no descriptor\n");
    return e == 0;
}

/* The length of a trace or a profile in seconds; 0: the request is refused. */
static int64_t seconds_wanted(int conn, const HttpRequest *r, uint64_t otherwise) {
    uint64_t seconds = http_number(r, "seconds", otherwise);
    if (seconds >= 1 && seconds <= 600) return (int64_t)seconds;
    answer_text(conn, r, 400, "seconds must be 1 to 600\n");
    return 0;
}

static void serve_page(int conn, const HttpRequest *r) {
    http_answer(conn, r, 200, "text/html; charset=utf-8", page_html,
                (size_t)(page_html_end - page_html));
}

static bool asks_for(const HttpRequest *r, const char *name) {
    return http_number(r, name, 0) != 0;
}

/* Counting the groups of goroutines takes a quarter of a percent of a CPU at most. */
static void serve_events(int conn, const HttpRequest *r) {
    int64_t next_full = 0;
    Snapshot s = {.who = true, .own = asks_for(r, "own")};
    int e = http_begin(conn, 200, "text/event-stream", "X-Accel-Buffering: no\r\n");
    while (e == 0 && !r->head) {
        Out o = OUT_GROWING;
        int64_t start = gort_now();
        s.goroutines = start >= next_full;
        out_str(&o, "data: ");
        page_snapshot(&o, &s);
        out_str(&o, "\n\n");
        s.who = false;
        int64_t end = gort_now();
        if (s.goroutines) next_full = end + (end - start) * 400;
        e = o.failed ? o.failed : http_send(conn, o.buf, o.used);
        free(o.buf);
        if (e == 0) gort_sleep(TICK);
    }
}

typedef struct Find {
    uint64_t id;
    Out *out;
    bool found;
} Find;

static void dump_ours(G *gp, void *out) {
    uint32_t status;
    if (g_exists(gp, &status) && page_own(gp)) dump_g(out, gp, NULL);
}

static void dump_if(G *gp, void *arg) {
    Find *f = arg;
    if (gp->id != f->id || load_acq(&gp->status) == G_DEAD) return;
    dump_g(f->out, gp, NULL);
    f->found = true;
}

static void serve_goroutines(int conn, const HttpRequest *r) {
    Out o = OUT_GROWING;
    const char *type = PLAIN_TEXT;
    Find f = {.id = http_number(r, "id", UINT64_MAX), .out = &o, .found = true};
    if (f.id != UINT64_MAX) {
        f.found = false;
        each_g(dump_if, &f);
    } else if (r->wants_json || format_is(r, "json")) {
        page_goroutines_json(&o, r);
        type = JSON;
    } else {
        dump_to(&o);
        if (asks_for(r, "own")) each_g(dump_ours, &o);
    }
    if (f.found) answer_out(conn, r, type, &o);
    else answer_text(conn, r, 404, "no such goroutine\n");
}

static void serve_leaks(int conn, const HttpRequest *r) {
    uint64_t set = settings.leak ? (uint64_t)settings.leak * GORT_MS : 10ULL * 60 * GORT_SEC;
    uint64_t minutes = http_number(r, "minutes", UINT64_MAX);
    int64_t age = (int64_t)(minutes == UINT64_MAX ? set : minutes * 60 * GORT_SEC);
    if (minutes != UINT64_MAX && minutes > 1 << 20) {
        answer_text(conn, r, 400, "minutes must be 0 to 1048576\n");
        return;
    }
    Out o = OUT_GROWING;
    Leaks *l = sysfault_alloc() ? NULL : malloc(sizeof *l);
    bool json = format_is(r, "json");
    if (l == NULL) o.failed = -ENOMEM;
    else if (json) page_leaks_json(&o, l, gort_now(), age);
    else if (leak_report(l, &o, gort_now(), age) == 0)
        out_str(&o, "no goroutine has been blocked for so long\n");
    answer_out(conn, r, json ? JSON : PLAIN_TEXT, &o);
    free(l);
}

/* ---- our descriptors ------------------------------------------------------------------------- */

typedef struct OwnCall {
    Call call;
    attempt_fn *attempt;
    const OwnFd *own;
    OwnFd *accepted; /* entered in the section that accepts; NULL: not an accept */
} OwnCall;

static long try_own(Call *c) {
    OwnCall *o = container_of(c, OwnCall, call);
    if (own_fd_number(o->own) < 0) return -EBADF;
    long r = o->attempt(c);
    if (r >= 0 && o->accepted) *o->accepted = own_fd((int)r);
    return r;
}

/* conn: a place; from CONNECTIONS on, what that listener has accepted and has no place for. */
static OwnFd *socket_of(int conn) {
    return conn < CONNECTIONS ? &page.sockets[conn] : &page.accepted[conn - CONNECTIONS];
}

static OwnCall own_call(const OwnFd *own, attempt_fn *attempt, int dir, void *buf, size_t n) {
    Call c = {.attempt = try_own, .fd = own->number - 1, .dir = (uint8_t)dir, .buf = buf, .n = n};
    return (OwnCall){.call = c, .attempt = attempt, .own = own};
}

static ssize_t page_read(int conn, void *buf, size_t n, int64_t deadline) {
    OwnCall o = own_call(socket_of(conn), try_rw, DIR_READ, buf, n);
    return call_run(&o.call, deadline);
}

ssize_t page_write(int conn, const void *bytes, size_t n, int64_t deadline) {
    OwnCall o = own_call(socket_of(conn), try_rw, DIR_WRITE, (void *)bytes, n);
    return call_run(&o.call, deadline);
}

/* For a client that may still send: a connection that is closed before all is read is reset, and
 * the answer is lost. Says that no more comes, and drops what the client sends, for ten seconds. */
static void drop_rest(int conn) {
    char buf[16384];
    int64_t until = time_after(gort_now(), 10 * GORT_SEC);
    M *m = enter();
    int fd = own_fd_number(socket_of(conn));
    if (fd >= 0) os_sys(SYS_shutdown, fd, SHUT_WR, 0, 0, 0, 0);
    leave(m);
    while (page_read(conn, buf, sizeof buf, until) > 0 && gort_now() < until) {}
}

static void close_in_table(OwnFd *entry) {
    M *m = enter();
    int fd = own_fd_number(entry);
    *entry = (OwnFd){0};
    m->pins++; /* so that gort_close does not park in the section (close.c) */
    if (fd >= 0) gort_close(fd);
    m->pins--;
    leave(m);
}

static void close_connection(int place) {
    M *m = enter();
    close_in_table(&page.sockets[place]);
    store_rel(&page.connections[place], 0); /* pairs with take_place: the entry is empty */
    leave(m);
}

/* ---- what takes time ------------------------------------------------------------------------- */

/* Waits until then and drops what the client sends; false: the client has gone. */
static bool stays(int conn, int64_t until) {
    for (;;) {
        char buf[64];
        ssize_t r = page_read(conn, buf, sizeof buf, until);
        if (r == -ETIMEDOUT) return true;
        if (r <= 0) return false;
        if (gort_now() >= until) return true;
    }
}

/* A profile that has ended, in the form that was asked for. */
static void answer_profile(int conn, const HttpRequest *r, Profile *f, int64_t duration) {
    Out o = OUT_GROWING;
    const char *type = "application/octet-stream";
    if (format_is(r, "folded")) {
        type = PLAIN_TEXT;
        folded_write(&o, f, asks_for(r, "library"));
    } else if (format_is(r, "svg")) {
        type = "image/svg+xml";
        flame_write(&o, f, asks_for(r, "library"));
    } else {
        pprof_write(&o, f, duration);
    }
    profile_free(f);
    answer_out(conn, r, type, &o);
}

static void answer_goroutines(int conn, const HttpRequest *r, bool creators) {
    Profile f = {0};
    if (has_begun(conn, r, profile_goroutines(&f, creators, asks_for(r, "own"))))
        answer_profile(conn, r, &f, 0);
}

static void serve_pprof_goroutine(int conn, const HttpRequest *r) {
    if (http_number(r, "debug", 0)) serve_goroutines(conn, r);
    else answer_goroutines(conn, r, false);
}

static void serve_created(int conn, const HttpRequest *r) { answer_goroutines(conn, r, true); }

static void serve_timed(int conn, const HttpRequest *r, Profile *f) {
    int64_t seconds = seconds_wanted(conn, r, 10), start = gort_now();
    int64_t end = start + seconds * GORT_SEC;
    const ProfileKind *k = f->kind;
    bool there = true;
    if (seconds == 0 || !has_begun(conn, r, k->begin(f))) return;
    while (there && gort_now() < end) {
        there = stays(conn, k->refresh ? time_after(gort_now(), 25 * GORT_MS) : end);
        if (k->refresh) k->refresh();
    }
    k->end(f);
    if (there) answer_profile(conn, r, f, gort_now() - start);
    else profile_free(f);
}

static void serve_cpu(int conn, const HttpRequest *r) { serve_timed(conn, r, &cpu_profile); }
static void serve_block(int conn, const HttpRequest *r) { serve_timed(conn, r, &block_profile); }
static void serve_mutex(int conn, const HttpRequest *r) { serve_timed(conn, r, &mutex_profile); }

static void send_file(int conn, const OwnFd *from) {
    char buf[16384];
    off_t at = 0;
    for (ssize_t n; (n = pread(own_fd_number(from), buf, sizeof buf, at)) > 0; at += n)
        if (http_send(conn, buf, (size_t)n) < 0) return;
}

static void close_bare(int fd) {
    if (fd >= 0) os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* A file for a trace: the number that the tracer writes by, or -EMFILE; *entry is the page's, which
 * the end of the runtime may close while the tracer still writes. In a section. Bare system calls:
 * TSan must not learn these numbers (close_number, netpoll.c). */
static int trace_file(OwnFd *entry) {
    int file = (int)os_sys(SYS_memfd_create, (long)"gort-trace", MFD_CLOEXEC, 0, 0, 0, 0);
    int mine = (int)os_sys(SYS_fcntl, file, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
    if (file >= 0 && mine >= 0) {
        *entry = own_fd(os_fd_away(mine));
        return file;
    }
    close_bare(file);
    close_bare(mine);
    return -EMFILE;
}

/* 0: a trace is running, and *entry is its file. */
static int begin_trace(OwnFd *entry, const TraceForm *form) {
    M *m = enter();
    int file = trace_file(entry), e = file < 0 ? file : tracing_start(file, form);
    if (e == 0) store_seq(&page.traces, 1);
    else close_bare(file);
    leave(m);
    if (e < 0) close_in_table(entry);
    return e;
}

/* The client's goroutine, the end of the runtime: the exchange lets one of them stop it. */
static long stop_trace(void *arg) { return xchg_seq(&page.traces, 0) ? tracing_stop() : 0; }

typedef struct TraceKind {
    const char *format; /* "": JSON for other programs */
    const TraceForm *form;
    uint64_t most;
    const char *type, *more;
} TraceKind;
#define ATTACHED(name) "Content-Disposition: attachment; filename=\"" name "\"\r\n"

static const TraceKind trace_kinds[] = {
    {"timeline", &timeline_form, TIMELINE_MOST, JSON, ""},
    {"perfetto", &perfetto_form, TRACE_MOST, "application/octet-stream",
     ATTACHED("gort-trace.pftrace")},
    {"", &json_form, TRACE_MOST, JSON, ATTACHED("gort-trace.json")},
};

static const TraceKind *trace_kind(const HttpRequest *r) {
    const TraceKind *k = trace_kinds;
    while (k->format[0] && !format_is(r, k->format)) k++;
    return k;
}

static void answer_trace(int conn, const OwnFd *file, const TraceKind *k) {
    http_begin(conn, 200, k->type, k->more);
    send_file(conn, file);
}

typedef struct LastSeconds {
    OwnFd file;
    const TraceKind *kind;
} LastSeconds;

static bool open_last(LastSeconds *l, OwnFd *entry) {
    M *m = enter();
    int file = trace_file(entry);
    if (file >= 0) l->file = own_fd(os_fd_away(file));
    leave(m);
    return file >= 0;
}

static long write_last(void *arg) {
    LastSeconds *l = arg;
    long e = tracing_last(own_fd_number(&l->file), l->kind->form, l->kind->most);
    own_fd_close(&l->file);
    return e;
}

/* The flight recorder's last seconds; it goes on meanwhile. */
static void serve_last(int conn, const HttpRequest *r) {
    const TraceKind *k = trace_kind(r);
    OwnFd *entry = &page.files[conn];
    LastSeconds last = {.kind = k};
    long e = open_last(&last, entry) ? gort_blocking(write_last, &last) : -EMFILE;
    if (e == -EINVAL)
        answer_text(conn, r, 409, "the flight recorder is off (GORT_DEBUG=flight=5000 is on)\n");
    else if (has_begun(conn, r, (int)e)) answer_trace(conn, entry, k);
    close_in_table(entry);
}

static void serve_recording(int conn, const HttpRequest *r) {
    const TraceKind *k = trace_kind(r);
    int64_t seconds = seconds_wanted(conn, r, 1);
    OwnFd *entry = &page.files[conn];
    bool there = true;
    if (seconds == 0 || !has_begun(conn, r, begin_trace(entry, k->form))) return;
    int64_t until = time_after(gort_now(), seconds * GORT_SEC);
    while (there && gort_now() < until && tracing_size() < k->most) {
        int64_t next = time_after(gort_now(), 25 * GORT_MS);
        there = stays(conn, next < until ? next : until);
    }
    gort_blocking(stop_trace, NULL);
    if (there) answer_trace(conn, entry, k);
    close_in_table(entry);
}

static void serve_trace(int conn, const HttpRequest *r) {
    if (asks_for(r, "last")) serve_last(conn, r);
    else serve_recording(conn, r);
}

static void serve_metrics(int conn, const HttpRequest *r) {
    Out o = OUT_GROWING;
    page_metrics(&o);
    answer_out(conn, r, "text/plain; version=0.0.4; charset=utf-8", &o);
}

static void serve_index(int conn, const HttpRequest *r);

typedef struct Route {
    const char *path;
    void (*serve)(int conn, const HttpRequest *r);
    bool costs;       /* takes time and memory: refuse() wants proof */
    const char *what; /* for the index; NULL: not in it */
} Route;

static const Route routes[] = {
    {"/", serve_page, false, "this program, live"}, /* web/page.html */
    /* server-sent events: JSON, four times a second */
    {"/events", serve_events, false, "what the live page draws, as server-sent events"},
    /* ?format=json: a list; ?id=N: one */
    {"/goroutines", serve_goroutines, false, "every goroutine and where it stands"},
    {"/leaks", serve_leaks, false, "goroutines blocked for longer than ?minutes=10"},
    {"/metrics", serve_metrics, false, "figures for Prometheus"},
    /* ?seconds=N, or ?last=1; &format=perfetto, &format=timeline: for the page */
    {"/trace?seconds=1", serve_trace, true, "what the scheduler did, for ui.perfetto.dev"},
    /* In pprof's format; &format=folded: folded stacks, &format=svg: a flame graph. */
    {"/debug/pprof/", serve_index, false, NULL},
    {"/debug/pprof", serve_index, false, NULL},
    {"/debug/pprof/goroutine", serve_pprof_goroutine, false, /* ?debug=1: the dump */
     "stacks of all goroutines"},
    {"/debug/pprof/created", serve_created, false, "goroutines by where they were started"},
    {"/debug/pprof/profile", serve_cpu, true, "CPU time of ?seconds=10, by goroutine and stack"},
    {"/debug/pprof/block", serve_block, true, "where goroutines waited during ?seconds=10"},
    {"/debug/pprof/mutex", serve_mutex, true, "where waits for locks were ended"},
};

/* A route's path without its parameters is path. */
static bool route_is(const Route *at, const char *path) {
    size_t n = strcspn(at->path, "?");
    return strlen(path) == n && memcmp(path, at->path, n) == 0;
}

/* What the client has shown goes into the links. */
static void out_link(Out *o, const Route *to, const char *more, const char *word,
                     const char *token) {
    bool asks = strchr(to->path, '?') || more[0];
    out_fmt(o, "<a href=\"%s%s", to->path, more);
    if (token[0]) out_str(o, asks ? "&amp;token=" : "?token=");
    for (const char *s = token; *s; s++) out_fmt(o, "%%%02x", (unsigned char)*s);
    out_fmt(o, "\">%s</a>", word);
}

static void out_route(Out *o, const Route *to, const char *token) {
    bool profile = begins_with(to->path, "/debug/pprof/");
    out_str(o, "<tr><td>");
    out_link(o, to, "", to->path, token);
    out_fmt(o, "<td>%s<td>", to->what);
    if (profile) out_link(o, to, "?format=svg", "flame graph", token);
    out_str(o, "\n");
}

static void out_html(Out *o, const char *s) {
    for (; *s; s++) {
        if (*s == '<' || *s == '&') out_fmt(o, "&#%d;", *s);
        else out_bytes(o, s, 1);
    }
}

static void serve_index(int conn, const HttpRequest *r) {
    Out o = OUT_GROWING;
    char token[128] = "";
    http_param(r, "token", token, sizeof token);
    out_str(&o, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
                "content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>");
    out_html(&o, page_program.name);
    out_fmt(&o,
            " (%d): profiles</title>\n<style>:root{color-scheme:light dark}body{font:15px/1.6 "
            "system-ui,sans-serif;margin:1.5em}td{padding:0 1.5em .2em 0}</style>\n<h1>",
            page_program.pid);
    out_html(&o, page_program.name);
    out_fmt(&o,
            ", PID %d</h1>\n<p>%d goroutines. Profiles are for <code>go tool pprof URL</code>; "
            "format=folded is text.\n<table>\n",
            page_program.pid, gort_count() - (int)page_own_count());
    for (size_t i = 0; i < count_of(routes); i++)
        if (routes[i].what) out_route(&o, &routes[i], token);
    out_str(&o, "</table></html>\n");
    answer_out(conn, r, "text/html; charset=utf-8", &o);
}

/* What a path answers in; NULL: in one form only. */
static const char *formats_of(const char *path) {
    if (begins_with(path, "/debug/pprof/") && path[13]) return "folded or svg for a profile";
    if (strcmp(path, "/trace") == 0) return "perfetto or timeline for a trace";
    return strcmp(path, "/goroutines") == 0 || strcmp(path, "/leaks") == 0 ? "json" : NULL;
}

static bool format_known(const HttpRequest *r, const char *words) {
    static const char *const formats[] = {"folded", "svg", "perfetto", "timeline", "json"};
    for (size_t i = 0; words && i < count_of(formats); i++)
        if (format_is(r, formats[i])) return strstr(words, formats[i]) != NULL;
    return false;
}

/* NULL, or what is wrong with the request's parameters. */
static const char *wrong_param(const HttpRequest *r) {
    static const char *const numbers[] = {"seconds", "minutes", "id",  "debug",
                                          "limit",   "last",    "own", "library"};
    bool dump = strcmp(r->path, "/debug/pprof/goroutine") == 0 && format_is(r, "json");
    for (size_t i = 0; i < count_of(numbers); i++)
        if (http_number(r, numbers[i], 0) == HTTP_NO_NUMBER)
            return "seconds, minutes, id, debug, limit, last, own and library must be whole "
                   "numbers\n";
    if (!http_has(r, "format") || dump || format_known(r, formats_of(r->path))) return NULL;
    return "format must be folded or svg for a profile, perfetto or timeline for a trace, json for "
           "goroutines and leaks\n";
}

static void route(const Listener *l, int conn, const HttpRequest *r) {
    const char *wrong;
    size_t i = 0;
    while (i < count_of(routes) && !route_is(&routes[i], r->path)) i++;
    int no = refuse(l, r, i < count_of(routes) && routes[i].costs);
    if (no == 401) answer_text(conn, r, no, "the token is needed\n");
    else if (no) answer_text(conn, r, no, "refused\n");
    else if (i == count_of(routes)) answer_text(conn, r, 404, "no such page\n");
    else if (r->head && routes[i].costs) http_begin(conn, 200, "application/octet-stream", "");
    else if ((wrong = wrong_param(r)) != NULL) answer_text(conn, r, 400, wrong);
    else routes[i].serve(conn, r);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Reads a request's head within ten seconds. 200, the status to refuse it, 0: the peer has gone. */
static int read_request(int conn, HttpRequest *r) {
    char buf[HTTP_HEAD];
    size_t n = 0;
    int64_t deadline = time_after(gort_now(), 10 * GORT_SEC);
    for (;;) {
        ssize_t got = page_read(conn, buf + n, sizeof buf - n, deadline);
        if (got <= 0) return 0;
        n += (size_t)got;
        int status = http_parse(buf, n, r); /* not 0 once buf is full */
        if (status) return status;
    }
}

/* place: in page.sockets; the descriptor's number may be another file's by now */
static void serve_connection(void *arg) {
    int place = (int)(intptr_t)arg;
    HttpRequest r;
    mark_own();
    int status = read_request(place, &r);
    if (status == 200) route(page.from[place], place, &r);
    else if (status) {
        answer_text(place, NULL, status, "refused\n");
        drop_rest(place);
    }
    close_connection(place);
}

static int take_place(void) {
    for (int i = 0; i < CONNECTIONS; i++) {
        uint32_t none = 0;
        if (cas_acq(&page.connections[i], &none, 1)) return i;
    }
    return -1;
}

/* Starts the goroutine of a connection. False: no place, or no memory. */
static bool serve_elsewhere(Listener *l, OwnFd *entry) {
    M *m = enter();
    int place = take_place();
    if (place >= 0) {
        page.sockets[place] = *entry;
        page.from[place] = l;
    }
    bool served =
        place >= 0 && gort_go_with(&page_attr, serve_connection, (void *)(intptr_t)place) == 0;
    if (served) {
        *entry = (OwnFd){0};
    } else if (place >= 0) {
        page.sockets[place] = (OwnFd){0};
        store_rel(&page.connections[place], 0);
    }
    leave(m);
    return served;
}

/* For clients: a unix socket has no URL. */
static void print_url(char url[URL_SIZE], const Listener *l) {
    bool path = begins_with(l->local, "unix:");
    print_buf(url, URL_SIZE, path ? "%s" : "http://%s/", l->local);
}

static void say_gone(Listener *l) {
    char url[URL_SIZE];
    if (own_fd_number(&l->socket) >= 0) return;
    print_url(url, l);
    print_fd(2, "gort: no live page on %s any more: the program has closed its socket\n", url);
}

static void accept_loop(void *arg) {
    Listener *l = arg;
    int listener = (int)(l - page.listeners);
    OwnFd *entry = &page.accepted[listener];
    mark_own();
    for (;;) {
        OwnCall a = own_call(&l->socket, try_accept, DIR_READ, NULL, 0);
        a.accepted = entry;
        int fd = (int)call_run(&a.call, GORT_FOREVER);
        if (fd == -EBADF || fd == -EINVAL) {
            say_gone(l);
            return;
        }
        if (fd < 0) {
            gort_sleep(100 * GORT_MS); /* out of descriptors, for now */
            continue;
        }
        if (serve_elsewhere(l, entry)) continue;
        answer_text(CONNECTIONS + listener, NULL, 503, "too many connections\n");
        close_in_table(entry);
    }
}

/* ---- listening ------------------------------------------------------------------------------- */

static void page_announce(const Listener *l) {
    char url[URL_SIZE];
    print_url(url, l);
    const char *before = l->drawn ? "?token=" : "the token in GORT_HTTP_TOKEN";
    const char *token = l->drawn ? l->token : "";
    if (l->open)
        print_fd(2,
                 "gort: live page on %s\ngort: its traces and profiles, for other clients: %s%s\n",
                 url, before, token);
    else print_fd(2, "gort: live page on %s%s%s%s\n", url, l->drawn ? "" : " with ", before, token);
}

static int listener_new(Socket *s) {
    uint32_t n = load_rlx(&page.nlisteners);
    Listener *l = &page.listeners[n];
    if (n == LISTENERS) return -EMFILE;
    *l = (Listener){.socket = own_fd(s->fd)};
    int e = gort_local_addr(s->fd, l->local, sizeof l->local);
    l->open = begins_with(l->local, "127.") || begins_with(l->local, "[::1]") ||
              begins_with(l->local, "unix:");
    if (e == 0) e = get_token(l);
    if (e < 0) return e;
    M *m = enter(); /* in one: the accepting goroutine, and with it the socket's entry */
    e = gort_go_with(&page_attr, accept_loop, l);
    if (e == 0) {
        store_rel(&page.nlisteners, n + 1);
        socket_over(s, 0);
    }
    leave(m);
    if (e == 0) page_announce(l);
    return e;
}

static int listen_on(const char *addr) {
    char at[300];
    static HouseLock making;
    Socket s;
    if (addr == NULL || strlen(addr) > 250) return -EINVAL;
    /* ":6060": this machine only */
    print_buf(at, sizeof at, "%s%s", addr[0] == ':' ? "127.0.0.1" : "", addr);
    int e = socket_listen(&s, at, 0);
    if (e < 0) return e;
    socket_away(&s);
    house_lock(&making);
    e = listener_new(&s);
    house_unlock(&making);
    return e < 0 ? socket_over(&s, e) : 0;
}

EXPORT int gort_debug_listen(const char *addr) {
    return in_forked_child() || !runtime_running() ? -ENOTCONN : listen_on(addr);
}

static void find_out_who(void) {
    struct timespec now;
    page_program.name = program_invocation_short_name;
    page_program.pid = os_getpid();
    clock_gettime(CLOCK_REALTIME, &now);
    page_program.began = now.tv_sec * 1000 + now.tv_nsec / GORT_MS;
    if (gethostname(page_program.host, sizeof page_program.host - 1) != 0) page_program.host[0] = 0;
}

/* Why GORT_HTTP is not served. */
static const char *page_why_not(int error) {
    if (error == -ENOENT && begins_with(env_http, "unix:")) return "there is no such directory";
    return gort_addr_strerror(env_http, error);
}

void page_begin_run(void) {
    find_out_who();
    int e = env_http[0] ? listen_on(env_http) : 0;
    if (e < 0) print_fd(2, "gort: GORT_HTTP=%s ignored: %s\n", env_http, page_why_not(e));
}

void page_end_run(void) {
    for (uint32_t i = 0; i < page.nlisteners; i++) close_in_table(&page.listeners[i].socket);
    for (int i = 0; i < LISTENERS; i++) close_in_table(&page.accepted[i]);
    for (int i = 0; i < CONNECTIONS; i++) close_connection(i);
    page.nlisteners = 0;
    stop_trace(NULL);
    for (int i = 0; i < CONNECTIONS; i++) close_in_table(&page.files[i]);
    Profile *const profiles[] = {&cpu_profile, &block_profile, &mutex_profile};
    for (size_t i = 0; i < count_of(profiles); i++) {
        profiles[i]->kind->end(profiles[i]);
        profile_free(profiles[i]);
    }
}
