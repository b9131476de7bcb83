/*
 * TLS by OpenSSL in goroutines, without the hook: to be copied into a program.
 *
 * OpenSSL works on memory; the bytes go through gort_read and gort_write_full, which park the
 * goroutine outside of OpenSSL. Its calls are announced as blocking ones: there a goroutine keeps
 * its thread and is not preempted, and OpenSSL has thread-local variables: errors, random numbers.
 * (gort_pin would do that too, but who is pinned must not wait for malloc's lock, which a preempted
 * goroutine may hold.)
 */
#include <gort.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

typedef enum { HANDSHAKE, READ, WRITE, SHUTDOWN } Op;
typedef struct {
    SSL *ssl;
    BIO *in, *out;
    gort_ctx *time;
    int fd;
} Tls;

/* One call of OpenSSL; *why as from SSL_get_error. */
static int tls_step(Tls *t, Op op, void *buf, int n, int *why) {
    gort_enter_syscall();
    ERR_clear_error();
    int r = op == HANDSHAKE ? SSL_do_handshake(t->ssl)
            : op == READ    ? SSL_read(t->ssl, buf, n)
            : op == WRITE   ? SSL_write(t->ssl, buf, n)
                            : SSL_shutdown(t->ssl);
    *why = SSL_get_error(t->ssl, r);
    gort_exit_syscall();
    return r;
}

/* Until it is done: what OpenSSL wants to send is sent, what it waits for is read. A count; 0: the
 * peer has said goodbye; -EPROTO, or an error of the descriptor, that of a context in use too. */
static ssize_t tls_do(Tls *t, Op op, void *buf, int n) {
    char bytes[16384], *text;
    for (;;) {
        int why, r = tls_step(t, op, buf, n, &why);
        long left = BIO_get_mem_data(t->out, &text);
        ssize_t k = left > 0 ? gort_write_full(t->fd, text, (size_t)left) : 0;
        if (k < 0) return k;
        if (left > 0) BIO_reset(t->out);
        if (r > 0 || op == SHUTDOWN) return r;
        if (why == SSL_ERROR_ZERO_RETURN) return 0;
        if (why != SSL_ERROR_WANT_READ) return -EPROTO;
        if ((k = gort_read(t->fd, bytes, sizeof bytes)) <= 0) return k < 0 ? k : -ECONNRESET;
        if (BIO_write(t->in, bytes, (int)k) != k) return -ENOMEM;
    }
}

/* What follows has so long; a context in use ends what waits. */
static int tls_within(Tls *t, int64_t ns) {
    gort_ctx *before = t->time;
    gort_ctx_use(t->time = gort_ctx_with_timeout(NULL, ns));
    gort_ctx_release(before);
    return t->time ? 0 : -ENOMEM;
}

/* Takes fd over. host: a client of that name's server; NULL: a server. tls_close is due afterwards,
 * also where this fails. */
static int tls_open(Tls *t, SSL_CTX *ctx, int fd, const char *host) {
    *t = (Tls){SSL_new(ctx), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()), NULL, fd};
    if (t->ssl == NULL || t->in == NULL || t->out == NULL || tls_within(t, 5 * GORT_SEC) < 0)
        return -ENOMEM;
    BIO_up_ref(t->in), BIO_up_ref(t->out); /* ours, and those of ssl */
    SSL_set_bio(t->ssl, t->in, t->out);
    if (host == NULL) SSL_set_accept_state(t->ssl);
    else if (SSL_set1_host(t->ssl, host) == 1 && SSL_set_tlsext_host_name(t->ssl, host) == 1)
        SSL_set_connect_state(t->ssl);
    else return -ENOMEM;
    return (int)tls_do(t, HANDSHAKE, NULL, 0);
}

/* result: of the last call; after an error there is no goodbye. */
static void tls_close(Tls *t, ssize_t result) {
    if (result >= 0) tls_do(t, SHUTDOWN, NULL, 0);
    SSL_free(t->ssl);
    BIO_free(t->in), BIO_free(t->out);
    gort_close(t->fd);
    gort_ctx_release(t->time);
}
