/*
 * Listening and dialling by address.
 *
 * The deadline of a dial covers the lookup of a name. getaddrinfo(3) cannot be interrupted, so with
 * a deadline it runs elsewhere and its result comes over a channel; if the caller gives up, the
 * lookup has the last reference. Elsewhere is a goroutine, where the caller is one and would be
 * stopped together with it; a plain thread outlives the runtime, and so must its lookup: a thread.
 *
 * Addresses of a name are tried in turn, each with a fair part of the time that is left, as in Go:
 * one that swallows packets leaves the others their time. The first error is returned.
 *
 * A unix socket file outlives its listener. One without a listener (connect says ECONNREFUSED) is
 * replaced; a live one, and any other file, is left alone. A house lock keeps two listeners of this
 * process from replacing each other's between bind and listen.
 *
 * Only the resolver and snprintf come from libc here, outside of sections; errno is put back.
 */
#include "io/addr.h"
#include "io/net.h"
#include "sched/ender.h"
#include "sync/houselock.h"
#include "io/fdcall.h"
#include "base/sysfault.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <fcntl.h>

#define LEAST_SHARE (2 * GORT_SEC) /* an address gets this much, if it is left */
#define TRIES 8

static int set_int(int fd, int level, int option, int value) {
    return (int)sys6(SYS_setsockopt, fd, level, option, &value, sizeof value, 0);
}

/* In a section. No other goroutine knows the number: gort_close's several are not needed. */
static void socket_close(ExitHook *h) {
    int fd = container_of(h, Socket, hook)->fd;
    desc_born(fd);
    uint32_t life = desc_note_end(fd);
    close_number(fd);
    desc_note_over(fd, life);
}

/* s->fd, or -errno. The socket belongs to s until socket_over. */
static int socket_typed(Socket *s, int family, int type) {
    M *m = enter();
    do s->fd = (int)sys6(SYS_socket, family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);
    while (netpoll_more_numbers(s->fd));
    if (s->fd >= 0) {
        desc_born(s->fd);
        s->hook = (ExitHook){.abandon = socket_close};
        exit_hook_push(self(m), &s->hook);
    }
    leave(m);
    return s->fd;
}
static int socket_new(Socket *s, int family) { return socket_typed(s, family, SOCK_STREAM); }

void socket_away(Socket *s) {
    M *m = enter();
    int high = os_fd_copy_away(s->fd);
    if (high >= 0) {
        socket_close(&s->hook);
        desc_born(high);
        s->fd = high;
    }
    leave(m);
}

int socket_over(Socket *s, int r) {
    M *m = enter();
    exit_hook_pop(self(m), &s->hook);
    if (r < 0) socket_close(&s->hook);
    leave(m);
    return r < 0 ? r : s->fd;
}

/* ---- names ---------------------------------------------------------------------------------- */

typedef struct Lookup {
    gort_chan *done; /* of int: lookup_call's */
    uint32_t refs;   /* atomic */
    struct addrinfo *found;
    const char *node, *service;
    const struct addrinfo *hints;
    struct addrinfo own_hints;
    char text[]; /* node and service */
} Lookup;

/* A code of getaddrinfo, all of which are negative; EAI_SYSTEM: an errno value instead. */
static long lookup_call(void *arg) {
    Lookup *l = arg;
    errno = 0;
    int code = getaddrinfo(l->node, l->service, l->hints, &l->found);
    /* glibc knows no name where it cannot open its files */
    bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return code == EAI_SYSTEM || (code == EAI_NONAME && short_of) ? errno : code;
}

static int lookup_now(Lookup *l) {
    int saved = *gort_errno_location();
    long code = gort_blocking(lookup_call, l);
    *gort_errno_location() = saved;
    if (code != 0) l->found = NULL;
    return (int)code;
}

static void lookup_drop(Lookup *l) {
    if (sub_seq(&l->refs, 1) > 0) return;
    if (l->found) freeaddrinfo(l->found);
    gort_chan_release(l->done);
    free(l);
}

static void lookup_run(void *arg) {
    Lookup *l = arg;
    int code = lookup_now(l);
    gort_chan_send(l->done, &code);
    lookup_drop(l);
}

static void *lookup_thread(void *arg) {
    lookup_run(arg);
    return NULL;
}

static int lookup_elsewhere(Lookup *l) {
    pthread_t thread;
    M *m = enter();
    bool parks = is_goroutine(m);
    leave(m);
    if (parks && gort_go(lookup_run, l) == 0) return 0;
    int r = thread_create(&thread, NULL, lookup_thread, l);
    if (r == 0) pthread_detach(thread);
    return -r;
}

/* A copy that outlives the call; NULL: no memory. */
static Lookup *lookup_copy(const Lookup *from) {
    size_t node = from->node ? strlen(from->node) + 1 : 0;
    size_t service = from->service ? strlen(from->service) + 1 : 0;
    Lookup *l = sysfault_alloc() ? NULL : calloc(1, sizeof *l + node + service);
    if (l == NULL) return NULL;
    l->refs = 2;
    l->done = gort_chan_new(sizeof(int), 1);
    if (node) l->node = memcpy(l->text, from->node, node);
    if (service) l->service = memcpy(l->text + node, from->service, service);
    if (from->hints) {
        l->own_hints = *from->hints;
        l->hints = &l->own_hints;
    }
    return l;
}

/* As getaddrinfo, which cannot be interrupted: another goroutine or thread calls it. Also -ENOMEM,
 * -EAGAIN, -ETIMEDOUT and what a context in use ends waits with: no EAI_ code has
 * their values. */
static int lookup_bounded(const Lookup *asked, struct addrinfo **found, int64_t deadline) {
    M *m = enter();
    int code = wait_over(m, deadline);
    leave(m);
    if (code) return code;
    Lookup *l = lookup_copy(asked);
    if (l == NULL) return -ENOMEM;
    code = l->done ? lookup_elsewhere(l) : -ENOMEM;
    if (code < 0) {
        l->refs = 1;
    } else {
        int r = gort_chan_recv_until(l->done, &code, deadline);
        if (r < 0) code = r;
    }
    if (code == 0) {
        *found = l->found;
        l->found = NULL;
    }
    lookup_drop(l);
    return code;
}

static int lookup(Lookup *l, struct addrinfo **found, int64_t deadline) {
    deadline = call_limit(deadline);
    if (deadline != GORT_FOREVER) return lookup_bounded(l, found, deadline);
    int code = lookup_now(l);
    if (code == 0) *found = l->found;
    return code;
}

EXPORT int gort_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                            struct addrinfo **res) {
    if (in_forked_child()) return -ENOTCONN;
    Lookup l = {.node = node, .service = service, .hints = hints};
    int code = lookup(&l, res, GORT_FOREVER);
    if (code > 0) {
        *gort_errno_location() = code;
        return EAI_SYSTEM;
    }
    return code == -ENOMEM ? EAI_MEMORY : code == -EAGAIN ? EAI_AGAIN : code;
}

/* 0 and a list for freeaddrinfo, or -errno. */
static int lookup_until(const char *host, struct addrinfo **found, int64_t deadline) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    Lookup l = {.node = host, .hints = &hints};
    *found = NULL;
    int code = lookup(&l, found, deadline);
    if (code > 0) return -code;
    switch (code) {
    case EAI_AGAIN:
    case EAI_FAIL: return -EHOSTUNREACH;
    case EAI_MEMORY: return -ENOMEM;
    case 0:
    case -ENOMEM:
    case -EAGAIN:
    case -ETIMEDOUT:
    case -ECANCELED: return code;
    default: return -ENOENT;
    }
}

/* Looks the name up, and calls `at` for its addresses in turn until one works. left: how many are
 * still to be called, this one among them; arg: at's. */
static int each_address(const NetAddr *a, int64_t deadline,
                        int (*at)(const struct addrinfo *i, int left, const void *arg),
                        const void *arg) {
    struct addrinfo *found, *i;
    int r = lookup_until(a->host, &found, deadline), first = 0, left = 0;
    if (r < 0) return r;
    for (i = found; i; i = i->ai_next) left++;
    for (i = found; i; i = i->ai_next, left--) {
        in_port_t *port = addr_port(i->ai_addr);
        if (port) *port = htons(a->port);
        r = at(i, left, arg);
        if (r >= 0) break;
        if (first == 0) first = r;
    }
    freeaddrinfo(found);
    return r >= 0 ? r : first ? first : -ENOENT;
}

/* ---- listening ------------------------------------------------------------------------------ */

/* Each of these gives s->fd, which listens and belongs to s, or -errno, and s has none. */

static int bind_and_listen(int fd, const struct sockaddr *sa, socklen_t len, int backlog) {
    int r = (int)sys6(SYS_bind, fd, sa, len, 0, 0, 0);
    return r < 0 ? r : (int)sys6(SYS_listen, fd, backlog, 0, 0, 0, 0);
}

/* With port 0 and SO_REUSEADDR two sockets may get one port, and the second listen fails. */
static int listen_at(Socket *s, const struct sockaddr *sa, socklen_t len, int backlog, bool both) {
    const in_port_t *port = addr_port((struct sockaddr *)sa);
    int r = -EADDRINUSE;
    for (int i = 0; i < TRIES && r == -EADDRINUSE; i++) {
        int fd = socket_new(s, sa->sa_family);
        if (fd < 0) return fd;
        set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (sa->sa_family == AF_INET6) set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both);
        r = bind_and_listen(fd, sa, len, backlog);
        if (r == 0) return fd;
        socket_over(s, r);
        if (port == NULL || *port != 0) break;
    }
    return r;
}

static int listen_everywhere(Socket *s, NetAddr *a, int backlog) {
    addr_any(a, AF_INET6, false);
    int r = listen_at(s, &a->sa, a->len, backlog, true);
    if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL) return r;
    addr_any(a, AF_INET, false);
    return listen_at(s, &a->sa, a->len, backlog, false);
}

typedef struct Listening {
    Socket *socket;
    int backlog;
} Listening;

static int listen_found(const struct addrinfo *i, int left, const void *arg) {
    const Listening *l = arg;
    return listen_at(l->socket, i->ai_addr, i->ai_addrlen, l->backlog, false);
}

/* The socket file has no listener. */
static bool stale(const NetAddr *a) {
    struct stat st;
    if (sys6(SYS_newfstatat, AT_FDCWD, a->un.sun_path, &st, AT_SYMLINK_NOFOLLOW, 0, 0) < 0)
        return false;
    if (!S_ISSOCK(st.st_mode)) return false;
    Socket s;
    int fd = socket_new(&s, AF_UNIX);
    if (fd < 0) return false;
    int r = (int)sys6(SYS_connect, fd, &a->sa, a->len, 0, 0, 0);
    return socket_over(&s, r < 0 ? r : -EADDRINUSE) == -ECONNREFUSED;
}

static int listen_unix(Socket *s, const NetAddr *a, int backlog) {
    static HouseLock one_at_a_time;
    int fd = socket_new(s, AF_UNIX);
    if (fd < 0) return fd;
    house_lock(&one_at_a_time);
    int r = bind_and_listen(fd, &a->sa, a->len, backlog);
    if (r == -EADDRINUSE && a->un.sun_path[0] != 0 && stale(a)) {
        sys6(SYS_unlinkat, AT_FDCWD, a->un.sun_path, 0, 0, 0, 0);
        r = bind_and_listen(fd, &a->sa, a->len, backlog);
    }
    house_unlock(&one_at_a_time);
    return r < 0 ? socket_over(s, r) : fd;
}

static int listen_addr(Socket *s, NetAddr *a, int backlog) {
    Listening l = {s, backlog};
    if (a->len == 0 && a->host[0]) return each_address(a, GORT_FOREVER, listen_found, &l);
    if (a->len == 0) return listen_everywhere(s, a, backlog);
    if (a->sa.sa_family == AF_UNIX) return listen_unix(s, a, backlog);
    return listen_at(s, &a->sa, a->len, backlog, false);
}

int socket_listen(Socket *s, const char *addr, int backlog) {
    NetAddr a;
    int saved = *gort_errno_location();
    int r = addr_parse(addr, &a);
    if (backlog <= 0) backlog = SOMAXCONN;
    if (r == 0) r = listen_addr(s, &a, backlog);
    *gort_errno_location() = saved;
    return r;
}

EXPORT int gort_listen(const char *addr, int backlog) {
    Socket s;
    if (in_forked_child()) return -ENOTCONN;
    int r = socket_listen(&s, addr, backlog);
    return r < 0 ? r : socket_over(&s, 0);
}

/* ---- datagrams ------------------------------------------------------------------------------ */

/* As listen_at. Without SO_REUSEADDR, by which a second socket would take over the port. */
static int bind_udp(Socket *s, const struct sockaddr *sa, socklen_t len, bool both) {
    int fd = socket_typed(s, sa->sa_family, SOCK_DGRAM);
    if (fd < 0) return fd;
    if (sa->sa_family == AF_INET6) set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both);
    int r = (int)sys6(SYS_bind, fd, sa, len, 0, 0, 0);
    return r < 0 ? socket_over(s, r) : fd;
}

static int bind_found(const struct addrinfo *i, int left, const void *socket) {
    return bind_udp((Socket *)socket, i->ai_addr, i->ai_addrlen, false);
}

static int bind_everywhere(Socket *s, NetAddr *a) {
    addr_any(a, AF_INET6, false);
    int r = bind_udp(s, &a->sa, a->len, true);
    if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL) return r;
    addr_any(a, AF_INET, false);
    return bind_udp(s, &a->sa, a->len, false);
}

static int bind_addr(Socket *s, NetAddr *a) {
    if (a->len == 0 && a->host[0]) return each_address(a, GORT_FOREVER, bind_found, s);
    if (a->len == 0) return bind_everywhere(s, a);
    return a->sa.sa_family == AF_UNIX ? -EINVAL : bind_udp(s, &a->sa, a->len, false);
}

EXPORT int gort_listen_udp(const char *addr) {
    Socket s;
    NetAddr a;
    if (in_forked_child()) return -ENOTCONN;
    int saved = *gort_errno_location();
    int r = addr_parse(addr, &a);
    if (r == 0) r = bind_addr(&s, &a);
    *gort_errno_location() = saved;
    return r < 0 ? r : socket_over(&s, 0);
}

/* ---- dialling ------------------------------------------------------------------------------- */

/* A connect to an unused port of this machine may get that very port as its own. */
static bool reached_itself(int fd) {
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n = sizeof here, k = sizeof there;
    if (sys6(SYS_getsockname, fd, &here, &n, 0, 0, 0) < 0) return false;
    if (sys6(SYS_getpeername, fd, &there, &k, 0, 0, 0) < 0) return false;
    return n == k && memcmp(&here, &there, n) == 0;
}

static int dial_at(const struct sockaddr *sa, socklen_t len, int64_t deadline) {
    for (int i = 0; i < TRIES; i++) {
        Socket s;
        int fd = socket_new(&s, sa->sa_family);
        if (fd < 0) return fd;
        if (sa->sa_family != AF_UNIX) set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        int r = gort_connect_until(fd, sa, len, deadline);
        bool itself = r == 0 && sa->sa_family != AF_UNIX && reached_itself(fd);
        r = socket_over(&s, itself ? -ECONNREFUSED : r);
        if (!itself) return r;
    }
    return -ECONNREFUSED;
}

static int64_t share_of(int64_t deadline, int left) {
    if (deadline == GORT_FOREVER) return deadline;
    int64_t now = os_now(), rest = time_left(deadline, now), share = rest / left;
    if (rest == 0) return deadline;
    if (share < LEAST_SHARE) share = rest < LEAST_SHARE ? rest : LEAST_SHARE;
    return time_after(now, share);
}

static int dial_found(const struct addrinfo *i, int left, const void *deadline) {
    return dial_at(i->ai_addr, i->ai_addrlen, share_of(*(const int64_t *)deadline, left));
}

static int dial_loopback(NetAddr *a, int64_t deadline) {
    addr_any(a, AF_INET, true);
    int r = dial_at(&a->sa, a->len, share_of(deadline, 2));
    if (r >= 0) return r;
    addr_any(a, AF_INET6, true);
    int second = dial_at(&a->sa, a->len, deadline);
    return second >= 0 ? second : r;
}

EXPORT int gort_dial_until(const char *addr, int64_t deadline) {
    NetAddr a;
    if (in_forked_child()) return -ENOTCONN;
    int saved = *gort_errno_location();
    int r = addr_parse(addr, &a);
    if (r == 0) {
        if (a.len > 0) r = dial_at(&a.sa, a.len, deadline);
        else if (a.host[0]) r = each_address(&a, deadline, dial_found, &deadline);
        else r = dial_loopback(&a, deadline);
    }
    *gort_errno_location() = saved;
    return r;
}

EXPORT int gort_dial(const char *addr, int64_t deadline) { return gort_dial_until(addr, deadline); }

/* nr: getsockname or getpeername. */
static int address_of(int fd, long nr, char *buf, size_t size) {
    NetAddr a = {.len = sizeof a.any};
    if (in_forked_child()) return -ENOTCONN;
    int r = (int)sys6(nr, fd, &a.any, &a.len, 0, 0, 0);
    if (r < 0) return r;
    int saved = *gort_errno_location();
    r = addr_format(&a, buf, size);
    *gort_errno_location() = saved;
    return r;
}

EXPORT int gort_local_addr(int fd, char *buf, size_t size) {
    return address_of(fd, SYS_getsockname, buf, size);
}
EXPORT int gort_peer_addr(int fd, char *buf, size_t size) {
    return address_of(fd, SYS_getpeername, buf, size);
}
