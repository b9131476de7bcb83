#define _GNU_SOURCE 1
/* Addresses as text: what is well formed, what is not, and what they become. */
#include "../lib/test.h"
#include "../lib/io_net.h"
#include <stdbool.h>

static const char *malformed[] = {"",
                                  "80",
                                  "localhost",
                                  "127.0.0.1",
                                  "127.0.0.1:",
                                  ":",
                                  "127.0.0.1:x",
                                  "1.1.1.1:-1",
                                  "1.1.1.1:65536",
                                  "1.1.1.1:99999999999",
                                  "::1:80",
                                  "[::1]",
                                  "[::1]80",
                                  "[::1]:",
                                  "[]:80",
                                  "[localhost]:80",
                                  "[127.0.0.1]:80",
                                  "[::1:80",
                                  "[::1]:80 ",
                                  "1.1.1.1:+8",
                                  "1.1.1.1: 80",
                                  "unix:",
                                  "unix:@",
                                  "a b:80",
                                  "host:80:90",
                                  "[::g]:1",
                                  "[fe80::1%]:1",
                                  "[fe80::1%0]:1",
                                  "[fe80::1%4294967296]:1",
                                  "[fe80::1%70000x]:1",
                                  "1.1.1.1:0x10"};

static bool knows_localhost(void) {
    struct addrinfo *found;
    int err = errno, r = getaddrinfo("localhost", NULL, NULL, &found);
    errno = err;
    if (r == 0) freeaddrinfo(found);
    return r == 0;
}

static void listens_as(const char *addr, const char *host) {
    char text[100], with_port[120];
    int l = gort_listen(addr, 0);
    if (l == -EADDRNOTAVAIL || l == -EAFNOSUPPORT) return; /* no IPv6 here */
    if (l == -ENOENT && !knows_localhost()) return;        /* a bare chroot has no /etc/hosts */
    CHECKF(l >= 0, "%s: %d", addr, l);
    CHECK(fcntl(l, F_GETFD) & FD_CLOEXEC);
    int on = 0;
    socklen_t n = sizeof on;
    CHECK_EQ(getsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, &n), 0);
    CHECK_EQ(on, 1);
    CHECK_EQ(gort_local_addr(l, text, sizeof text), 0);
    char *colon = strrchr(text, ':');
    CHECK(atoi(colon + 1) > 0);
    CHECK_EQ(gort_local_addr(l, with_port, strlen(text) + 1), 0);
    CHECK_EQ(gort_local_addr(l, with_port, strlen(text)), -ENOSPC);
    CHECK_EQ(gort_listen(text, 0), -EADDRINUSE);
    int c = gort_dial(text, GORT_FOREVER);
    CHECKF(c >= 0, "%s: %d", text, c);
    CHECK_EQ(getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
    CHECK_EQ(on, 1);
    CHECK_EQ(gort_close(c), 0);
    snprintf(with_port, sizeof with_port, ":%s", colon + 1);
    c = gort_dial(with_port, GORT_FOREVER); /* the loopback */
    CHECKF(c >= 0, "%s: %d", with_port, c);
    CHECK_EQ(gort_close(c), 0);
    CHECK_EQ(gort_close(l), 0);
    *colon = 0;
    if (host) CHECK_STR(text, host);
}

static int run(int argc, char **argv) {
    char text[100];
    errno = 12345;
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        CHECKF(gort_listen(malformed[i], 0) == -EINVAL, "listen %s", malformed[i]);
        CHECKF(gort_dial(malformed[i], GORT_FOREVER) == -EINVAL, "dial %s", malformed[i]);
    }
    /* well formed, though there is no such interface; or this machine has no IPv6 */
    int r = gort_listen("[fe80::1%4000000000]:0", 0);
    CHECKF(r == -ENODEV || r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT, "%d", r);
    CHECK_EQ(gort_dial(NULL, 0), -EINVAL);
    listens_as("127.0.0.1:0", "127.0.0.1");
    listens_as("0.0.0.0:0", "0.0.0.0");
    listens_as("[::1]:0", "[::1]");
    listens_as("[::ffff:127.0.0.1]:0", "127.0.0.1");
    listens_as("localhost:0", NULL);
    listens_as(":0", NULL);
    memset(text, 'x', sizeof text);
    char longer[300] = "unix:/";
    memset(longer + 6, 'x', 200);
    CHECK_EQ(gort_listen(longer, 0), -ENAMETOOLONG);
    CHECK_EQ(gort_dial(longer, 0), -ENAMETOOLONG);
    longer[5] = '@';
    CHECK_EQ(gort_listen(longer, 0), -ENAMETOOLONG);
    CHECK_EQ(gort_local_addr(-1, text, sizeof text), -EBADF);
    CHECK_EQ(gort_local_addr(0, text, 0) < 0, 1);
    CHECK_EQ(gort_dial("unix:/nonexistent/gort", GORT_FOREVER), -ENOENT);
    struct addrinfo *res = NULL, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    CHECK_EQ(gort_getaddrinfo("127.0.0.1", "80", &hints, &res), 0);
    CHECK_EQ(res->ai_addrlen, sizeof(struct sockaddr_in));
    freeaddrinfo(res);
    hints.ai_flags = AI_NUMERICHOST;
    CHECK_EQ(gort_getaddrinfo("localhost", "80", &hints, &res), EAI_NONAME);
    r = gort_dial("name.invalid:80", gort_now() + 20 * GORT_SEC);
    CHECKF(r == -ENOENT || r == -EHOSTUNREACH || r == -ETIMEDOUT, "name.invalid: %d", r);
    r = gort_dial("name.invalid:80", 0);
    CHECKF(r == -ENOENT || r == -EHOSTUNREACH || r == -ETIMEDOUT, "name.invalid, passed: %d", r);
    /* each error in its own words */
    CHECK(strcmp(gort_addr_strerror("name.invalid:80", -ENOENT), "no such host") == 0);
    CHECK(strstr(gort_addr_strerror("name.invalid:80", -EHOSTUNREACH), "name server") != NULL);
    CHECK(strstr(gort_addr_strerror("6060", -EINVAL), "behind a colon, as in :6060") != NULL);
    CHECK(strstr(gort_addr_strerror("", -EINVAL), "host:port") != NULL);
    const char *said = gort_addr_strerror("unix:/nonexistent/gort", -ENOENT);
    CHECK(strcmp(said, strerror(ENOENT)) == 0);
    CHECK(strcmp(gort_addr_strerror(":80", -EINVAL), strerror(EINVAL)) == 0);
    CHECK(strcmp(gort_addr_strerror("[::1]:80", -ECONNREFUSED), strerror(ECONNREFUSED)) == 0);
    CHECK(strcmp(gort_addr_strerror(NULL, EAI_NONAME), gai_strerror(EAI_NONAME)) == 0);
    CHECK(strcmp(gort_addr_strerror(NULL, -ECANCELED), strerror(ECANCELED)) == 0);
    CHECK_EQ(errno, 12345);
    wait_until(gort_count() == 1); /* nobody left at the resolver */
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
