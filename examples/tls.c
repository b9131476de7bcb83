/*
 * An HTTPS server, and a hundred clients of it; tls.h has what lies between gort and OpenSSL.
 *     ./tls CERT KEY 127.0.0.1:8443       serves until it is killed; curl --cacert CERT https://...
 *     ./tls CERT KEY                      any free port and clients of its own, who trust CERT
 */
#include "tls.h"
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 100, REQUESTS = 20 };
static char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, World!\n";
static SSL_CTX *server, *client;
static char address[64];

static void serve(void *arg) {
    Tls t;
    char text[4096];
    ssize_t n = tls_open(&t, server, *(int *)arg, NULL), have = 0;
    while (n > 0 && (n = tls_within(&t, 60 * GORT_SEC)) == 0 &&
           (n = tls_do(&t, READ, text + have, (int)(sizeof text - (size_t)have))) > 0) {
        if ((have += n) < 4 || memcmp(text + have - 4, "\r\n\r\n", 4) != 0) continue;
        n = tls_do(&t, WRITE, answer, sizeof answer - 1);
        have = 0;
    }
    tls_close(&t, n);
}

static int visit(gort_ctx *ctx, void *arg) {
    Tls t;
    char text[256];
    int fd = gort_dial(address, gort_now() + 10 * GORT_SEC);
    ssize_t n = fd < 0 ? fd : tls_open(&t, client, fd, "localhost");
    for (int i = 0; n > 0 && i < REQUESTS; i++) {
        ssize_t have = 0;
        n = tls_do(&t, WRITE, "GET / HTTP/1.1\r\n\r\n", 18);
        while (n > 0 && have < (ssize_t)sizeof answer - 1 &&
               (n = tls_do(&t, READ, text, sizeof text)) > 0)
            have += n;
    }
    if (fd >= 0) tls_close(&t, n);
    return (void)ctx, (void)arg, n > 0 ? 0 : n < 0 ? (int)n : -ENODATA;
}

static void accept_all(void *arg) {
    for (int fd; (fd = gort_accept(*(int *)arg, NULL, NULL)) >= 0 || fd == -EMFILE;)
        if (fd < 0) gort_sleep(10 * GORT_MS);
        else if (gort_go_copy(serve, &fd, sizeof fd) < 0) gort_close(fd);
}

static int run(int argc, char **argv) {
    /* exit() leaves OpenSSL alone: threads of the runtime may still be about to end. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    server = SSL_CTX_new(TLS_server_method());
    client = SSL_CTX_new(TLS_client_method());
    const char *where = argc > 3 ? argv[3] : "localhost:0";
    int listener = gort_listen(where, 0);
    int r = listener < 0 ? listener : gort_local_addr(listener, address, sizeof address);
    if (r < 0) return fprintf(stderr, "tls: %s: %s\n", where, gort_addr_strerror(where, r)), 1;
    if (argc < 3 || server == NULL || client == NULL ||
        SSL_CTX_use_certificate_file(server, argv[1], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(server, argv[2], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(client, argv[1], NULL) != 1)
        return fprintf(stderr, "usage: tls CERT KEY [ADDRESS]\n"), ERR_print_errors_fp(stderr), 1;
    SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
    printf("listening on https://%s/\n", address), fflush(stdout);
    if (argc > 3) return accept_all(&listener), 1;
    gort_group *group = gort_group_new(NULL, 0);
    r = group ? gort_go_copy(accept_all, &listener, sizeof listener) : -ENOMEM;
    for (int i = 0; i < CLIENTS && r == 0; i++) r = gort_group_go(group, visit, NULL);
    if (group && r == 0) r = gort_group_wait(group);
    if (r == 0) printf("%d clients are served\n", CLIENTS);
    return r ? fprintf(stderr, "tls: %s\n", strerror(-r)), 1 : 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
