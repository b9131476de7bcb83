/*
 * OpenSSL's queue of errors is a thread's; with the hook it is the goroutine's over every call that
 * waits. Each goroutine leaves an error of its own there, waits in many ways with others on the
 * same threads, and finds that one and no other. Half of them get it from OpenSSL itself: a
 * handshake over a blocking socket, with a peer that does not speak TLS.
 */
#include "server.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>

enum { GOROUTINES = 200, ROUNDS = 10 };
static SSL_CTX *context;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int done;

/* The newest error is that one, and the oldest: there is no other. */
static void expect(int library, int reason) {
    unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();
    CHECK_EQ(ERR_GET_LIB(first), library);
    CHECK_EQ(ERR_GET_REASON(first), reason);
    CHECK_EQ(ERR_GET_LIB(last), library);
    CHECK_EQ(ERR_GET_REASON(last), reason);
}

static void wait_somehow(int i, int *pair) {
    char c;
    switch (i % 3) {
    case 0: usleep((unsigned)(i * 7 % 500)); break;
    case 1:
        pthread_mutex_lock(&mutex);
        usleep(20);
        pthread_mutex_unlock(&mutex);
        break;
    default: CHECK_EQ(recv(pair[0], &c, 1, MSG_PEEK), 1); usleep(10);
    }
}

static void peer(void *arg) {
    int fd = (int)(intptr_t)arg;
    static const char page[] = "HTTP/1.1 400 what is this?\r\n\r\n";
    usleep(500);
    CHECK_EQ(write(fd, page, sizeof page - 1), sizeof page - 1);
}

/* Its error is in the queue then. */
static void handshake_fails(int *pair) {
    SSL *ssl = SSL_new(context);
    CHECK_EQ(gort_go(peer, (void *)(intptr_t)pair[1]), 0);
    CHECK_EQ(SSL_set_fd(ssl, pair[0]), 1);
    int r = SSL_connect(ssl);
    CHECK_EQ(r, -1);
    CHECK_EQ(SSL_get_error(ssl, r), SSL_ERROR_SSL);
    usleep(100);
    CHECK_EQ(SSL_get_error(ssl, r), SSL_ERROR_SSL);
    SSL_free(ssl);
}

static void goroutine(void *arg) {
    int i = (int)(intptr_t)arg, pair[2];
    for (int k = 0; k < ROUNDS; k++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ERR_clear_error();
        if (i % 2) handshake_fails(pair);
        else ERR_raise(ERR_LIB_USER, i + 1);
        expect(i % 2 ? ERR_LIB_SSL : ERR_LIB_USER, i % 2 ? SSL_R_WRONG_VERSION_NUMBER : i + 1);
        CHECK_EQ(write(pair[1], "x", 1), 1);
        wait_somehow(i, pair);
        expect(i % 2 ? ERR_LIB_SSL : ERR_LIB_USER, i % 2 ? SSL_R_WRONG_VERSION_NUMBER : i + 1);
        CHECK_EQ(close(pair[0]) | close(pair[1]), 0);
    }
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
}

static int start(int argc, char **argv) {
    context = SSL_CTX_new(TLS_client_method());
    for (intptr_t i = 0; i < GOROUTINES; i++) CHECK_EQ(gort_go(goroutine, (void *)i), 0);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < GOROUTINES) usleep(1000);
    gort_stats s;
    gort_stats_read(&s);
    printf("openssl: %d goroutines kept their errors, %d threads\n", GOROUTINES, (int)s.threads);
    CHECK_LT(s.threads, GOROUTINES / 2);
    SSL_CTX_free(context);
    return 0;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
