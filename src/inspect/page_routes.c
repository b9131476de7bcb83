/*
 * What the live page serves: routes[].
 *
 * A trace or a profile ends when its client goes away; a trace also when it has TRACE_MOST bytes,
 * or, for the timeline, TIMELINE_MOST, so that a browser can draw it. The end of the runtime finds
 * the running trace and its file as it finds descriptors (page.c): it is entered in the section
 * that begins it.
 */
#include "inspect/page.h"
#include "inspect/trace_session.h"
#include "debug/dump.h"
#include "debug/leak.h"
#include "debug/stats.h"
#include "sched/g.h"
#include "sched/sched.h"
#include "inspect/profile.h"
#include "inspect/scratch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TICK (250 * GORT_MS)
#define TRACE_MOST ((uint64_t)32 << 20) /* bytes of events */
#define TIMELINE_MOST ((uint64_t)2 << 20)

/* A file on its way to a function of gort_blocking, which may begin after the runtime has ended.
 * The function takes it, or the end does: the CAS of ticket decides. */
typedef struct Handed {
    OwnFd file;      /* owner of the ticket; written before it */
    uint32_t ticket; /* atomic: even while it can be taken */
} Handed;

static struct {
    OwnFd files[CONNECTIONS];   /* the connection's goroutine: the trace it sends */
    Handed handed[CONNECTIONS]; /* the same file, for the function that writes it */
    uint32_t traces;            /* atomic: the page started the running trace */
} recordings;

#define PLAIN_TEXT "text/plain; charset=utf-8"
#define JSON "application/json"

void page_answer_text(int conn, const HttpRequest *r, int status, const char *text) {
    http_answer(conn, r, status, "text/plain", text, strlen(text));
}

/* Sends and frees what o holds. */
static void answer_out(int conn, const HttpRequest *r, const char *type, Out *o) {
    if (o->failed) page_answer_text(conn, r, 503, "no memory\n");
    else http_answer(conn, r, 200, type, o->buf ? o->buf : "", o->used);
    scratch_free(o->buf);
}

static bool format_is(const HttpRequest *r, const char *word) {
    char format[16];
    return http_param(r, "format", format, sizeof format) && strcmp(format, word) == 0;
}

/* Has a trace or a profile begun? e: 0, or the error, which is answered. */
static bool has_begun(int conn, const HttpRequest *r, int e) {
    if (e == -EBUSY) page_answer_text(conn, r, 409, "another one is running\n");
    else if (e == -ENOTSUP)
        page_answer_text(conn, r, 409,
                         "no CPU profile: with signal=prof the scheduler has SIGPROF\n");
    else if (e < 0) page_answer_text(conn, r, 503, "no memory, or no descriptor\n");
    return e == 0;
}

/* The length of a trace or a profile in seconds; 0: the request is refused. */
static int64_t seconds_wanted(int conn, const HttpRequest *r, uint64_t otherwise) {
    uint64_t seconds = http_number(r, "seconds", otherwise);
    if (seconds >= 1 && seconds <= 600) return (int64_t)seconds;
    page_answer_text(conn, r, 400, "seconds must be 1 to 600\n");
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
        scratch_free(o.buf);
        if (e == 0) gort_sleep(TICK);
    }
}

typedef struct Find {
    uint64_t id;
    Out *out;
    bool found;
} Find;

static void dump_own(G *gp, void *out) {
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
        if (asks_for(r, "own")) each_g(dump_own, &o);
    }
    if (f.found) answer_out(conn, r, type, &o);
    else page_answer_text(conn, r, 404, "no such goroutine\n");
}

static void serve_leaks(int conn, const HttpRequest *r) {
    uint64_t set = settings.leak ? (uint64_t)settings.leak * GORT_MS : 10ULL * 60 * GORT_SEC;
    uint64_t minutes = http_number(r, "minutes", UINT64_MAX);
    int64_t age = (int64_t)(minutes == UINT64_MAX ? set : minutes * 60 * GORT_SEC);
    if (minutes != UINT64_MAX && minutes > 1 << 20) {
        page_answer_text(conn, r, 400, "minutes must be 0 to 1048576\n");
        return;
    }
    Out o = OUT_GROWING;
    Leaks *l = scratch_get(sizeof *l);
    bool json = format_is(r, "json");
    if (l == NULL) o.failed = -ENOMEM;
    else if (json) page_leaks_json(&o, l, gort_now(), age);
    else if (leak_report(l, &o, gort_now(), age) == 0)
        out_str(&o, "no goroutine has been blocked for so long\n");
    answer_out(conn, r, json ? JSON : PLAIN_TEXT, &o);
    scratch_free(l);
}

/* ---- recordings ------------------------------------------------------------------------------ */

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
    if (e == 0) store_seq(&recordings.traces, 1);
    else close_bare(file);
    leave(m);
    if (e < 0) page_close(entry);
    return e;
}

/* The client's goroutine, the end of the runtime: the exchange lets one of them stop it. */
static long stop_trace(void *arg) { return xchg_seq(&recordings.traces, 0) ? tracing_stop() : 0; }

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

static bool take_handed(Handed *h, uint32_t ticket) {
    return cas_seq(&h->ticket, &ticket, ticket | 1);
}

typedef struct LastSeconds {
    Handed *handed;
    uint32_t ticket;
    const TraceKind *kind;
} LastSeconds;

static bool open_last(LastSeconds *l, OwnFd *entry) {
    M *m = enter();
    int file = trace_file(entry);
    if (file >= 0) {
        l->ticket = (load_rlx(&l->handed->ticket) | 1) + 1;
        l->handed->file = own_fd(os_fd_away(file));
        store_seq(&l->handed->ticket, l->ticket);
    }
    leave(m);
    return file >= 0;
}

static long write_last(void *arg) {
    LastSeconds *l = arg;
    if (!take_handed(l->handed, l->ticket)) return -ENOTCONN;
    OwnFd file = l->handed->file; /* the next connection may have its own there */
    long e = tracing_last(own_fd_number(&file), l->kind->form, l->kind->most);
    own_fd_close(&file);
    return e;
}

static void close_handed(Handed *h) {
    if (take_handed(h, load_rlx(&h->ticket))) own_fd_close(&h->file);
}

/* The flight recorder's last seconds; it goes on meanwhile. */
static void serve_last(int conn, const HttpRequest *r) {
    const TraceKind *k = trace_kind(r);
    OwnFd *entry = &recordings.files[conn];
    LastSeconds last = {.handed = &recordings.handed[conn], .kind = k};
    long e = open_last(&last, entry) ? gort_blocking(write_last, &last) : -EMFILE;
    if (e == -EINVAL)
        page_answer_text(conn, r, 409,
                         "the flight recorder is off (GORT_DEBUG=flight=5000 is on)\n");
    else if (has_begun(conn, r, (int)e)) answer_trace(conn, entry, k);
    page_close(entry);
}

static void serve_recording(int conn, const HttpRequest *r) {
    const TraceKind *k = trace_kind(r);
    int64_t seconds = seconds_wanted(conn, r, 1);
    OwnFd *entry = &recordings.files[conn];
    bool there = true;
    if (seconds == 0 || !has_begun(conn, r, begin_trace(entry, k->form))) return;
    int64_t until = time_after(gort_now(), seconds * GORT_SEC);
    while (there && gort_now() < until && tracing_size() < k->most) {
        int64_t next = time_after(gort_now(), 25 * GORT_MS);
        there = stays(conn, next < until ? next : until);
    }
    gort_blocking(stop_trace, NULL);
    if (there) answer_trace(conn, entry, k);
    page_close(entry);
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
    bool costs;       /* takes time and memory: page_refuse() wants proof */
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

static void answer(int conn, const HttpRequest *r, const Route *route) {
    Scratch scratch;
    scratch_begin(&scratch);
    route->serve(conn, r);
    scratch_end(&scratch);
}

void page_route(int conn, const HttpRequest *r) {
    const char *wrong;
    size_t i = 0;
    while (i < count_of(routes) && !route_is(&routes[i], r->path)) i++;
    int no = page_refuse(conn, r, i < count_of(routes) && routes[i].costs);
    if (no == 401) page_answer_text(conn, r, no, "the token is needed\n");
    else if (no) page_answer_text(conn, r, no, "refused\n");
    else if (i == count_of(routes)) page_answer_text(conn, r, 404, "no such page\n");
    else if (r->head && routes[i].costs) http_begin(conn, 200, "application/octet-stream", "");
    else if ((wrong = wrong_param(r)) != NULL) page_answer_text(conn, r, 400, wrong);
    else answer(conn, r, &routes[i]);
}

/* The connections have gone. */
void page_end_recordings(void) {
    stop_trace(NULL);
    for (int i = 0; i < CONNECTIONS; i++) {
        page_close(&recordings.files[i]);
        close_handed(&recordings.handed[i]);
    }
    Profile *const profiles[] = {&cpu_profile, &block_profile, &mutex_profile};
    for (size_t i = 0; i < count_of(profiles); i++) {
        profiles[i]->kind->end(profiles[i]);
        profile_free(profiles[i]);
    }
}
