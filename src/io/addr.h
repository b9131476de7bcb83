/* Addresses of gort_listen and gort_dial: addr.c. */
#ifndef ADDR_H
#define ADDR_H

#include "base/base.h"
#include <netinet/in.h>
#include <sys/un.h>

#define HOST_MOST 255

typedef struct NetAddr {
    union {
        struct sockaddr sa;
        struct sockaddr_un un;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage any;
    };
    socklen_t len; /* 0: look host up, if it is not empty */
    uint16_t port;
    char host[HOST_MOST + 1]; /* empty: all addresses */
} NetAddr;

int addr_parse(const char *text, NetAddr *a);              /* 0, -EINVAL, -ENAMETOOLONG */
in_port_t *addr_port(struct sockaddr *sa);                 /* NULL: it has none */
void addr_any(NetAddr *a, int family, bool loopback);      /* with a->port */
int addr_format(const NetAddr *a, char *buf, size_t size); /* 0, -ENOSPC, -EAFNOSUPPORT */

#endif
