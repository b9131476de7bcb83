/* Names: libc's resolver in gort_blocking, on the same thread: it keeps state in thread-locals. */
#include "hook/hook_internal.h"

HOOK int getaddrinfo(const char *restrict node, const char *restrict service,
                     const struct addrinfo *restrict hints, struct addrinfo **restrict res) {
    if (!here()) return libc(getaddrinfo)(node, service, hints, res);
    return (int)libc_blocking(getaddrinfo, node, service, hints, res, 0, 0);
}

HOOK int gethostbyname_r(const char *restrict name, struct hostent *restrict ret,
                         char *restrict buf, size_t size, struct hostent **restrict found,
                         int *restrict error) {
    if (!here()) return libc(gethostbyname_r)(name, ret, buf, size, found, error);
    return (int)libc_blocking(gethostbyname_r, name, ret, buf, size, found, error);
}
