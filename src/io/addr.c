/* Addresses as text: 127.0.0.1:8080, [::1]:0, localhost:80, :80, unix:/path, unix:@abstract. A name
 * stays text, for net.c to look up. A port is digits, 0 to 65535; brackets hold an IPv6 address and
 * nothing else; without brackets there is no colon but the last.
 *
 * Errors are numbers, and some numbers have words of their own: a name that nobody knows is ENOENT,
 * "No such file or directory". So gort_addr_strerror has words for a number and an address. */
#include "io/addr.h"
#include "base/print.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>

static bool parse_port(const char *s, NetAddr *a) {
    uint64_t port;
    if (!parse_u64(s, strlen(s), &port) || port > UINT16_MAX) return false;
    a->port = (uint16_t)port;
    return true;
}

static int parse_unix(const char *path, NetAddr *a) {
    size_t n = strlen(path);
    bool abstract = path[0] == '@';
    if (n == 0 || (abstract && n == 1)) return -EINVAL;
    if (n + !abstract > sizeof a->un.sun_path) return -ENAMETOOLONG;
    a->un.sun_family = AF_UNIX;
    memcpy(a->un.sun_path, path, n);
    if (abstract) a->un.sun_path[0] = 0;
    a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + !abstract);
    return 0;
}

static bool parse_v4(NetAddr *a) {
    if (inet_pton(AF_INET, a->host, &a->v4.sin_addr) != 1) return false;
    a->v4.sin_family = AF_INET;
    a->len = sizeof a->v4;
    return true;
}

/* With an interface after %, by name or number. ::ffff:1.2.3.4 is an address of IPv4. */
static bool parse_v6(NetAddr *a) {
    char *scope = strchr(a->host, '%');
    if (scope) {
        uint64_t index = if_nametoindex(scope + 1);
        if (index == 0) parse_u64(scope + 1, strlen(scope + 1), &index);
        if (index == 0 || index > UINT32_MAX) return false;
        a->v6.sin6_scope_id = (uint32_t)index;
        *scope = 0;
    }
    if (inet_pton(AF_INET6, a->host, &a->v6.sin6_addr) != 1) return false;
    if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) { /* a socket for IPv6 alone does not bind to it */
        inet_ntop(AF_INET, &a->v6.sin6_addr.s6_addr[12], a->host, sizeof a->host);
        memset(&a->any, 0, sizeof a->any);
        return parse_v4(a);
    }
    a->v6.sin6_family = AF_INET6;
    a->len = sizeof a->v6;
    return true;
}

static int copy_host(NetAddr *a, const char *from, const char *end) {
    if (end - from > HOST_MOST) return -EINVAL;
    memcpy(a->host, from, (size_t)(end - from));
    a->host[end - from] = 0;
    return 0;
}

static int parse_bracketed(const char *text, NetAddr *a) {
    const char *end = strchr(text, ']');
    if (end == NULL || end[1] != ':' || !parse_port(end + 2, a)) return -EINVAL;
    return copy_host(a, text + 1, end) < 0 || !parse_v6(a) ? -EINVAL : 0;
}

static int parse_host_port(const char *text, NetAddr *a) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !parse_port(colon + 1, a)) return -EINVAL;
    if (copy_host(a, text, colon) < 0 || strchr(a->host, ':')) return -EINVAL;
    for (const char *s = a->host; *s; s++)
        if ((unsigned char)*s <= ' ' || strchr("[]/@", *s)) return -EINVAL;
    parse_v4(a);
    return 0;
}

int addr_parse(const char *text, NetAddr *a) {
    memset(a, 0, sizeof *a);
    if (text == NULL) return -EINVAL;
    if (strncmp(text, "unix:", 5) == 0) return parse_unix(text + 5, a);
    int r = text[0] == '[' ? parse_bracketed(text, a) : parse_host_port(text, a);
    if (r == 0 && a->len > 0) *addr_port(&a->sa) = htons(a->port);
    return r;
}

in_port_t *addr_port(struct sockaddr *sa) {
    if (sa->sa_family == AF_INET) return &((struct sockaddr_in *)(void *)sa)->sin_port;
    return sa->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)sa)->sin6_port : NULL;
}

void addr_any(NetAddr *a, int family, bool loopback) {
    memset(&a->any, 0, sizeof a->any);
    a->sa.sa_family = (sa_family_t)family;
    if (family == AF_INET) a->v4.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    else a->v6.sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    a->len = family == AF_INET ? sizeof a->v4 : sizeof a->v6;
    *addr_port(&a->sa) = htons(a->port);
}

static int format_unix(const NetAddr *a, char *buf, size_t size) {
    size_t n = a->len > offsetof(struct sockaddr_un, sun_path)
                   ? a->len - offsetof(struct sockaddr_un, sun_path)
                   : 0;
    const char *path = a->un.sun_path;
    bool abstract = n > 0 && path[0] == 0;
    if (!abstract) n = strnlen(path, n);
    if (size < 5 + n + 1) return -ENOSPC;
    memcpy(buf, "unix:", 5);
    memcpy(buf + 5, path, n);
    if (abstract) buf[5] = '@';
    buf[5 + n] = 0;
    return 0;
}

/* An IPv4 address that came to an IPv6 socket is shown as IPv4. */
static void format_v6(const struct sockaddr_in6 *in, char *host, size_t size) {
    char name[IF_NAMESIZE];
    if (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr)) {
        inet_ntop(AF_INET, &in->sin6_addr.s6_addr[12], host, (socklen_t)size);
        return;
    }
    host[0] = '[';
    inet_ntop(AF_INET6, &in->sin6_addr, host + 1, (socklen_t)size - 1);
    size_t n = strlen(host);
    if (in->sin6_scope_id && if_indextoname(in->sin6_scope_id, name))
        n += (size_t)snprintf(host + n, size - n, "%%%s", name);
    snprintf(host + n, size - n, "]");
}

int addr_format(const NetAddr *a, char *buf, size_t size) {
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 4], text[sizeof host + 8];
    const in_port_t *port = addr_port((struct sockaddr *)&a->sa);
    if (a->sa.sa_family == AF_UNIX) return format_unix(a, buf, size);
    if (port == NULL) return -EAFNOSUPPORT;
    if (a->sa.sa_family == AF_INET6) format_v6(&a->v6, host, sizeof host);
    else inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
    int n = snprintf(text, sizeof text, "%s:%u", host, ntohs(*port));
    if ((size_t)n >= size) return -ENOSPC;
    memcpy(buf, text, (size_t)n + 1);
    return 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const char *why_malformed(const char *addr) {
    uint64_t port;
    if (addr[0] && parse_u64(addr, strlen(addr), &port))
        return "no address: a port stands behind a colon, as in :6060";
    return "no address: it is host:port, 127.0.0.1:port, [::1]:port, :port or unix:/path";
}

/* Of gort_getaddrinfo. */
static const char *why_not_found(int error) {
    bool of_ours = error == -ENOTCONN || error == -ETIMEDOUT || error == -ECANCELED;
    return of_ours ? strerror(-error) : gai_strerror(error);
}

static const char *addr_error(const char *addr, int error) {
    NetAddr a;
    if (addr == NULL) return why_not_found(error);
    bool malformed = addr_parse(addr, &a) < 0, name = !malformed && a.len == 0 && a.host[0];
    if (error == -EINVAL && malformed) return why_malformed(addr);
    if (error == -ENOENT && name) return "no such host";
    if (error == -EHOSTUNREACH && name) return "the host, or a name server, cannot be reached";
    return error == 0 ? "no error" : strerror(error < 0 ? -error : error);
}

EXPORT const char *gort_addr_strerror(const char *addr, int error) {
    int saved = *gort_errno_location();
    const char *text = addr_error(addr, error);
    *gort_errno_location() = saved;
    return text;
}
