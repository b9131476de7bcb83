/* libcurl with OpenSSL: hundreds of https transfers. Arguments: "serve" key certificate (prints its
 * address), or the address. */
#include "crowd.h"
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

static SSL_CTX *context;

static void complain(SSL *s, int r) {
    int why = SSL_get_error(s, r), e = errno;
    fprintf(stderr, "SSL_accept: error %d, errno %d\n", why, e);
    ERR_print_errors_fp(stderr);
}

static void answer(void *arg) {
    int fd = (int)(intptr_t)arg, n = -1, r;
    char in[4096], out[256], body[32];
    SSL *s = SSL_new(context);
    SSL_set_fd(s, fd);
    errno = 0;
    if ((r = SSL_accept(s)) != 1) complain(s, r);
    else if ((r = SSL_read(s, in, sizeof in - 1)) > 0) {
        in[r] = 0;
        sscanf(in, "GET /%d", &n);
        gort_sleep(20 * GORT_MS);
        int len = snprintf(body, sizeof body, "number %d", n);
        len = snprintf(out, sizeof out,
                       "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len,
                       body);
        SSL_write(s, out, len);
        SSL_shutdown(s);
    }
    SSL_free(s);
    close(fd);
}

static int serve(int argc, char **argv) {
    char at[64];
    int fd = gort_listen("127.0.0.1:0", 0);
    context = SSL_CTX_new(TLS_server_method());
    CHECK(fd >= 0 && gort_local_addr(fd, at, sizeof at) == 0);
    CHECK(SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) == 1);
    CHECK(SSL_CTX_use_certificate_file(context, argv[3], SSL_FILETYPE_PEM) == 1);
    printf("https://%s\n", at);
    fflush(stdout);
    for (;;) {
        int conn = gort_accept(fd, NULL, NULL);
        if (conn >= 0 && fcntl(conn, F_SETFL, 0) == 0) /* as OpenSSL expects it */
            gort_go(answer, (void *)(intptr_t)conn);
    }
}

static const char *base;
typedef struct Body {
    char text[64];
    size_t n;
} Body;

static size_t take(char *data, size_t size, size_t n, void *arg) {
    Body *b = arg;
    for (size_t i = 0; i < size * n && b->n < sizeof b->text - 1; i++) b->text[b->n++] = data[i];
    return size * n;
}

static void fetch(int i) {
    char url[128], want[32], why[CURL_ERROR_SIZE] = "";
    Body b = {.n = 0};
    CURL *c = curl_easy_init();
    snprintf(url, sizeof url, "%s/%d", base, i);
    snprintf(want, sizeof want, "number %d", i);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &b);
    CURLcode r = curl_easy_perform(c);
    if (r != CURLE_OK) fprintf(stderr, "%s: %s\n", curl_easy_strerror(r), why);
    CHECK(r == CURLE_OK);
    CHECK(strcmp(b.text, want) == 0);
    curl_easy_cleanup(c);
}

static int run(int argc, char **argv) {
    if (strcmp(argv[1], "serve") == 0) return serve(argc, argv);
    base = argv[1];
    crowd("libcurl with OpenSSL", fetch);
    crowd("libcurl with OpenSSL, again", fetch);
    return 0;
}

int main(int argc, char **argv) {
    curl_global_init(CURL_GLOBAL_ALL);
    return gort_main(run, argc, argv);
}
