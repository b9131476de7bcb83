/*
 * Load for TLS servers: tls_load ADDRESS handshakes|requests CLIENTS SECONDS prints how many there
 * were. TLS 1.3 with TLS_AES_128_GCM_SHA256 and X25519, full handshakes; the server's key decides
 * the rest. A goroutine per client, by examples/tls.h.
 */
#include "../examples/tls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *address;
static int handshakes;
static int64_t end;
static SSL_CTX *ctx;
static long done; /* atomic */

static ssize_t request(Tls *t) {
    static char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char answer[512];
    ssize_t n = tls_do(t, WRITE, text, sizeof text - 1), have = 0;
    while (n > 0 && (have < 5 || memcmp(answer + have - 2, "!\n", 2) != 0))
        if ((n = tls_do(t, READ, answer + have, (int)(sizeof answer - (size_t)have))) > 0)
            have += n;
    return n;
}

static int visit(gort_ctx *group, void *arg) {
    ssize_t n = 1;
    (void)group, (void)arg;
    while (n > 0 && gort_now() < end) {
        Tls t;
        int fd = gort_dial(address, gort_now() + 10 * GORT_SEC);
        if (fd < 0) return fd;
        n = tls_open(&t, ctx, fd, "localhost");
        if (n > 0) tls_within(&t, 120 * GORT_SEC);
        if (n > 0 && handshakes) __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
        while (n > 0 && !handshakes && gort_now() < end)
            if ((n = request(&t)) > 0) __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
        tls_close(&t, n);
        gort_ctx_use(NULL);
    }
    return n > 0 ? 0 : n < 0 ? (int)n : -ENODATA;
}

static int run(int argc, char **argv) {
    if (argc != 5)
        return fprintf(stderr, "usage: tls_load ADDRESS handshakes|requests N SECONDS\n"), 2;
    address = argv[1];
    handshakes = strcmp(argv[2], "handshakes") == 0;
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set1_groups_list(ctx, "X25519"))
        return 1;
    gort_group *clients = gort_group_new(NULL, 0);
    int64_t start = gort_now();
    end = start + atoi(argv[4]) * GORT_SEC;
    for (int i = atoi(argv[3]); clients && i > 0; i--)
        if (gort_group_go(clients, visit, NULL) < 0) return 1;
    int r = clients ? gort_group_wait(clients) : -ENOMEM;
    if (r < 0) return fprintf(stderr, "tls_load: %s\n", strerror(-r)), 1;
    printf("%ld %.3f\n", done, (double)(gort_now() - start) / 1e9);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
