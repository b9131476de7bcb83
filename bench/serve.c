/*
 * The servers that bench/load drives: an echo of what comes, and an HTTP answer of 13 bytes.
 *
 * A goroutine per connection, plain blocking calls, as its Go twin does. TCP_NODELAY is set because
 * Go's net package sets it; otherwise the comparison would be one of socket options. Both servers
 * print where they listen (port 0 is any) and run until killed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"
#include "workloads.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

static void echo_conn(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[512];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0)
        if (gort_write_full(fd, buf, (size_t)n) < 0) break;
    gort_close(fd);
}

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                             "Content-Length: 13\r\n\r\nHello, World!";

static int request_ends(const char *buf, size_t have) {
    return have >= 4 && !memcmp(buf + have - 4, "\r\n\r\n", 4);
}

static void http_conn(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[2048];
    size_t have = 0;
    while (have < sizeof buf) {
        ssize_t n = gort_read(fd, buf + have, sizeof buf - have);
        if (n <= 0) break;
        have += (size_t)n;
        if (!request_ends(buf, have)) continue;
        have = 0;
        if (gort_write_full(fd, answer, sizeof answer - 1) < 0) break;
    }
    gort_close(fd);
}

static int serve(const char *addr, gort_fn *conn) {
    int one = 1, listener = gort_listen(addr, 4096);
    char where[128];
    if (listener < 0) {
        fprintf(stderr, "bench: %s: %s\n", addr, strerror(-listener));
        return 1;
    }
    if (!gort_local_addr(listener, where, sizeof where)) printf("listening %s\n", where);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        go(conn, (void *)(intptr_t)fd);
    }
}

int serve_echo(const char *addr) { return serve(addr, echo_conn); }
int serve_http(const char *addr) { return serve(addr, http_conn); }
