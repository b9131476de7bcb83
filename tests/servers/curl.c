/* libcurl in goroutines, against an HTTP server of goroutines in another process. Arguments:
 * "serve" (prints its address), or the address, an https address of another server, the pid of the
 * first. */
#include "server.h"
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* ---- the server ----------------------------------------------------------------------------- */

static void answer(void *arg) {
    int fd = (int)(intptr_t)arg, n = -1;
    char in[4096], out[256], body[32];
    ssize_t r = gort_read(fd, in, sizeof in - 1);
    if (r > 0) {
        in[r] = 0;
        sscanf(in, "GET /%d", &n);
        bool half = strncmp(in, "GET /half", 9) == 0;
        if (n >= 0) gort_sleep(200 * GORT_MS);
        else if (!half) gort_sleep(100 * GORT_SEC); /* a server that does not answer */
        int len = snprintf(body, sizeof body, "number %d", n);
        len = snprintf(out, sizeof out,
                       "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
                       half ? len + 100 : len, body);
        gort_write_full(fd, out, (size_t)len);
    }
    gort_close(fd);
}

static int serve(int argc, char **argv) {
    int fd = gort_listen("127.0.0.1:0", 0);
    char at[64];
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_local_addr(fd, at, sizeof at), 0);
    printf("http://%s\n", at);
    fflush(stdout);
    for (;;) {
        int conn = gort_accept(fd, NULL, NULL);
        if (conn >= 0) gort_go(answer, (void *)(intptr_t)conn);
    }
}

/* ---- the clients ---------------------------------------------------------------------------- */

static const char *base, *secure;

typedef struct Body {
    char text[4096];
    size_t n;
} Body;

static size_t take(char *data, size_t size, size_t n, void *arg) {
    Body *b = arg;
    size_t len = size * n, room = sizeof b->text - 1 - b->n;
    memcpy(b->text + b->n, data, len < room ? len : room);
    b->n += len < room ? len : room;
    return len;
}

static CURLcode fetch(const char *url, long timeout_ms, Body *b) {
    CURL *c = curl_easy_init();
    *b = (Body){0};
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, b);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    CURLcode r = curl_easy_perform(c);
    curl_easy_cleanup(c);
    return r;
}

static void get_number(int i) {
    char url[128], want[32];
    Body b;
    snprintf(url, sizeof url, "%s/%d", base, i);
    snprintf(want, sizeof want, "number %d", i);
    CURLcode r = fetch(url, 100000, &b);
    CHECKF(r == CURLE_OK, "%s", curl_easy_strerror(r));
    CHECK_STR(b.text, want);
}

static void get_secure(void *arg) {
    Body b;
    CURLcode r = fetch(secure, 100000, &b);
    CHECKF(r == CURLE_OK, "%s", curl_easy_strerror(r));
    CHECK_STR(b.text, "over TLS\n");
}

static int ended;
static void until_killed(void *arg) {
    char url[128];
    Body b;
    snprintf(url, sizeof url, "%s/never", base);
    CURLcode r = fetch(url, 100000, &b);
    CHECKF(r == CURLE_GOT_NOTHING || r == CURLE_RECV_ERROR || r == CURLE_COULDNT_CONNECT, "%s",
           curl_easy_strerror(r));
    add(&ended, 1);
}

static void kill_server(int pid) {
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_go(until_killed, NULL), 0);
    gort_sleep(100 * GORT_MS);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    wait_until(get(&ended) == 20);
}

static int run(int argc, char **argv) {
    Body b;
    char url[128];
    together("curl", get_number);
    timed_goroutines(20, get_secure);
    printf("curl: 20 over TLS (%s)\n", curl_version_info(CURLVERSION_NOW)->ssl_version);
    snprintf(url, sizeof url, "%s/never", base);
    CHECK_EQ(fetch(url, 300, &b), CURLE_OPERATION_TIMEDOUT);
    CHECK_EQ(fetch("http://127.0.0.1:1/", 100000, &b), CURLE_COULDNT_CONNECT);
    snprintf(url, sizeof url, "%s/half", base);
    CHECK_EQ(fetch(url, 100000, &b), CURLE_PARTIAL_FILE);
    kill_server(atoi(argv[3]));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2) return gort_main(serve, argc, argv);
    base = argv[1];
    secure = argv[2];
    curl_global_init(CURL_GLOBAL_ALL);
    return gort_main(run, argc, argv);
}
