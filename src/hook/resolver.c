/*
 * Names: libc's resolver in gort_blocking, on the same thread: it keeps state in thread-locals.
 */
#include "hook/hook_internal.h"

typedef struct AddrQuery {
    const char *node, *service;
    const struct addrinfo *hints;
    struct addrinfo **res;
} AddrQuery;

static long addr_blocking(void *arg) {
    AddrQuery *a = arg;
    return libc(getaddrinfo)(a->node, a->service, a->hints, a->res);
}

HOOK int getaddrinfo(const char *restrict node, const char *restrict service,
                     const struct addrinfo *restrict hints, struct addrinfo **restrict res) {
    if (!here()) return libc(getaddrinfo)(node, service, hints, res);
    AddrQuery a = {node, service, hints, res};
    return (int)stay_blocking(addr_blocking, &a);
}

typedef struct HostQuery {
    const char *name;
    struct hostent *ret, **result;
    char *buf;
    size_t size;
    int *error;
} HostQuery;

static long host_blocking(void *arg) {
    HostQuery *h = arg;
    return libc(gethostbyname_r)(h->name, h->ret, h->buf, h->size, h->result, h->error);
}

HOOK int gethostbyname_r(const char *restrict name, struct hostent *restrict ret,
                         char *restrict buf, size_t size, struct hostent **restrict found,
                         int *restrict error) {
    if (!here()) return libc(gethostbyname_r)(name, ret, buf, size, found, error);
    HostQuery h = {name, ret, found, buf, size, error};
    return (int)stay_blocking(host_blocking, &h);
}
