/* The live page refuses a request with a body: the client, which sends all of it, gets the answer,
 * not a reset. A request in the absolute form is answered. */
#include "../lib/test.h"

#include <unistd.h>

enum { BODY = 3000000 };
static char address[64];

/* The whole answer to text and n bytes more. */
static void ask(const char *text, size_t n, char *answer, size_t size) {
    static char more[4096];
    size_t got = 0;
    int fd = gort_dial(address, GORT_FOREVER);
    CHECK(fd >= 0);
    CHECK_EQ(gort_write(fd, text, strlen(text)), (ssize_t)strlen(text));
    for (size_t k; n > 0; n -= k) {
        k = n < sizeof more ? n : sizeof more;
        CHECK_EQ(gort_write(fd, more, k), (ssize_t)k);
    }
    for (ssize_t r; (r = gort_read(fd, answer + got, size - 1 - got)) != 0; got += (size_t)r)
        CHECKF(r > 0, "the answer ends with error %zd", r);
    answer[got] = 0;
    gort_close(fd);
}

static int run(int argc, char **argv) {
    static char answer[100000];
    CHECK_EQ(gort_debug_listen(address), 0);
    ask("GET /metrics HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n", BODY, answer, sizeof answer);
    CHECKF(strncmp(answer, "HTTP/1.1 413 ", 13) == 0, "%.100s", answer);
    ask("POST /metrics HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n", BODY, answer, sizeof answer);
    CHECKF(strncmp(answer, "HTTP/1.1 405 ", 13) == 0, "%.100s", answer);
    ask("GET http://localhost/metrics HTTP/1.1\r\nHost: x\r\n\r\n", 0, answer, sizeof answer);
    CHECKF(strncmp(answer, "HTTP/1.1 200 ", 13) == 0, "%.100s", answer);
    unlink(address + strlen("unix:"));
    return 0;
}

int main(int argc, char **argv) {
    snprintf(address, sizeof address, "unix:/tmp/gort-refused-%d", (int)getpid());
    return gort_main(run, argc, argv);
}
