/*
 * The live page: gort_debug_listen, GORT_HTTP.
 *
 * Goroutines serve it: one accepts, one serves each connection (64 at most). They mark themselves
 * as the runtime's own, so that lists, groups, counts and reports leave them out. This room has the
 * connections and the rules of access; page_routes.c has what is served.
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
 * the end finds all of them, and no number that was reused. The program may close any of them and
 * reuse its number, so each entry knows its file (ownfd.h), and is asked before every attempt to
 * accept, read or write, and before it is closed.
 */
#include "inspect/page.h"
#include "sync/houselock.h"
#include "base/env.h"
#include "io/fdcall.h"
#include "io/net.h"
#include "os/ownfd.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define URL_SIZE 320
#define LISTENERS 8

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
    Listener *from[CONNECTIONS];       /* the listener's, before the connection's begins */
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

int page_refuse(int conn, const HttpRequest *r, bool costs) {
    const Listener *l = page.from[conn];
    bool same = strcmp(r->site, "same-origin") == 0 || strcmp(r->site, "none") == 0;
    /* a page of another site asks: it may link to our page "/" */
    bool foreign =
        (r->site[0] && !same && strcmp(r->path, "/") != 0) || (r->origin[0] && !same_origin(r));
    /* the live page itself asks, or the browser's user */
    bool own = r->site[0] ? same : same_origin(r);
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

/* ---- descriptors ----------------------------------------------------------------------------- */

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

ssize_t page_read(int conn, void *buf, size_t n, int64_t deadline) {
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

void page_close(OwnFd *entry) {
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
    page_close(&page.sockets[place]);
    store_rel(&page.connections[place], 0); /* pairs with take_place: the entry is empty */
    leave(m);
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
    if (status == 200) page_route(place, &r);
    else if (status) {
        page_answer_text(place, NULL, status, "refused\n");
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
        page_answer_text(CONNECTIONS + listener, NULL, 503, "too many connections\n");
        page_close(entry);
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
    for (uint32_t i = 0; i < page.nlisteners; i++) page_close(&page.listeners[i].socket);
    for (int i = 0; i < LISTENERS; i++) page_close(&page.accepted[i]);
    for (int i = 0; i < CONNECTIONS; i++) close_connection(i);
    page.nlisteners = 0;
    page_end_recordings();
}
