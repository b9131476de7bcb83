/*
 * The page's HTTP parser: requests as they come, in pieces, wrong ones, and garbage. The garbage
 * is bred from real requests (flips, cuts, repeats) for HTTP_SECONDS, one by default, or a number
 * of rounds; every buffer stands against a guard page, so a read past its end is a fault.
 */
#include "../lib/white.h"
#include "inspect/http.h"

#include <sys/mman.h>

static char *room; /* HTTP_HEAD bytes, then a page that cannot be read */

static int parse(const char *text, size_t n, HttpRequest *r) {
    char *at = room + HTTP_HEAD - n;
    memcpy(at, text, n);
    return http_parse(at, n, r);
}

static int status(const char *text) {
    HttpRequest r;
    return parse(text, strlen(text), &r);
}

static void good(void) {
    HttpRequest r;
    char v[64];
    static const char text[] =
        "GET /goroutines?id=7&filter=chan+receive%21&x HTTP/1.1\r\nHost: [::1]:80\r\n"
        "Accept: text/html, application/json\r\nAuthorization: Bearer s3cret\r\n\r\n";
    /* not all there yet */
    for (size_t n = 0; n < sizeof text - 1; n++) CHECK_EQ(parse(text, n, &r), 0);
    CHECK_EQ(parse(text, sizeof text - 1, &r), 200);
    CHECK_STR(r.path, "/goroutines");
    CHECK_STR(r.host, "[::1]:80");
    CHECK_STR(r.token, "s3cret");
    CHECK(r.wants_json && !r.head);
    CHECK(http_number(&r, "id", 3) == 7 && http_number(&r, "no", 3) == 3 &&
          http_number(&r, "x", 3) == HTTP_NO_NUMBER);
    CHECK(http_param(&r, "filter", v, sizeof v));
    CHECK_STR(v, "chan receive!");
    CHECK_EQ(parse("HEAD / HTTP/1.0\n\n", 17, &r), 200);
    CHECK(r.head && r.host[0] == 0);
    CHECK_EQ(parse("GET /a%2fb HTTP/1.1\r\n\r\n", 23, &r), 200);
    CHECK_STR(r.path, "/a/b");
    /* absolute: its authority goes before Host */
    static const char whole[] = "GET HTTP://LocalHost:80/a?id=7 HTTP/1.1\r\nHost: evil\r\n\r\n";
    CHECK_EQ(parse(whole, sizeof whole - 1, &r), 200);
    CHECK_STR(r.path, "/a");
    CHECK_STR(r.host, "localhost:80");
    CHECK_EQ(http_number(&r, "id", 3), 7);
    CHECK_EQ(parse("GET http://x?id=7 HTTP/1.1\r\n\r\n", 30, &r), 200);
    CHECK_STR(r.path, "/");
    CHECK_STR(r.host, "x");
}

static void bad(void) {
    static char large[HTTP_HEAD];
    HttpRequest r;
    CHECK_EQ(status("\r\n"), 400);
    CHECK_EQ(status("GET\r\n\r\n"), 400);
    CHECK_EQ(status("GET / \r\n\r\n"), 400);
    CHECK_EQ(status("GET http:/x HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET http:///x HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET https://x/ HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET x HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("POST / HTTP/1.1\r\n\r\n"), 405);
    CHECK_EQ(status("GET / HTTP/2\r\n\r\n"), 505);
    CHECK_EQ(status("GET /%0a HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET /%g1 HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET /% HTTP/1.1\r\n\r\n"), 400);
    CHECK_EQ(status("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
    CHECK_EQ(status("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 413);
    CHECK_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n"), 400);
    CHECK_EQ(status("GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nsec-fetch-site: none\r\n\r\n"),
             400);
    CHECK_EQ(status("GET / HTTP/1.1\r\nOrigin:\r\n\r\n"), 400);
    CHECK_EQ(status("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
    memset(large, 'a', sizeof large);
    CHECK_EQ(parse(large, sizeof large, &r), 431);
    memcpy(large, "GET /", 5);
    memcpy(large + 2000, " HTTP/1.1\r\n\r\n", 13);
    CHECK_EQ(parse(large, 2013, &r), 414);
}

static uint64_t rng = 88172645463325252u;
static uint64_t draw(uint64_t n) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return rng % n;
}

static size_t breed(char *buf, size_t n) {
    static const char *const bits[] = {"\r\n", "\n\n", "%", "%0",    "?",  "&",
                                       "=",    ":",    " ", "Host:", "\t", "HTTP/1.1"};
    for (uint64_t k = draw(6) + 1; k-- > 0 && n > 0;) {
        size_t at = draw(n);
        switch (draw(4)) {
        case 0: buf[at] = (char)draw(256); break;
        case 1: n = at; break;
        case 2: {
            const char *bit = bits[draw(sizeof bits / sizeof *bits)];
            size_t length = strlen(bit);
            if (n + length > HTTP_HEAD) break;
            memmove(buf + at + length, buf + at, n - at);
            memcpy(buf + at, bit, length);
            n += length;
            break;
        }
        default: {
            size_t length = draw(n - at) + 1;
            if (n + length > HTTP_HEAD) break;
            memmove(buf + n, buf + at, length);
            n += length;
        }
        }
    }
    return n;
}

static void garbage(void) {
    static const char seed[] =
        "GET /goroutines?id=7&filter=a+b%21&token=abc HTTP/1.1\r\nHost: localhost:80\r\n"
        "Accept: application/json\r\nAuthorization: Bearer x\r\n\r\n";
    static char buf[HTTP_HEAD];
    const char *seconds = getenv("HTTP_SECONDS");
    int64_t until = seconds ? gort_now() + atoi(seconds) * GORT_SEC : 0;
    HttpRequest r;
    char v[32];
    for (int i = 0; i < 200000 || gort_now() < until; i++) {
        memcpy(buf, seed, sizeof seed - 1);
        size_t n = breed(buf, sizeof seed - 1);
        int s = parse(buf, n, &r);
        CHECK(s == 0 || s == 200 || (s >= 400 && s < 600));
        CHECK(memchr(r.path, 0, sizeof r.path) && memchr(r.query, 0, sizeof r.query));
        CHECK(memchr(r.host, 0, sizeof r.host) && memchr(r.token, 0, sizeof r.token));
        if (s != 200) continue;
        CHECK_EQ(r.path[0], '/');
        if (http_param(&r, "filter", v, sizeof v)) CHECK(memchr(v, 0, sizeof v));
        http_number(&r, "id", 0);
    }
}

int main(void) {
    room = mmap(NULL, HTTP_HEAD + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED);
    CHECK_EQ(mprotect(room + HTTP_HEAD, 4096, PROT_NONE), 0);
    good();
    bad();
    garbage();
    return 0;
}
