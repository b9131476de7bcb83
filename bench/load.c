/*
 * The client that loads a server: a process of its own, so that the server's CPU is the server's.
 *
 *     load echo|http ADDR CONNECTIONS SECONDS [PID]
 *     load wake ADDR WAKEUPS
 *
 * Closed loop: every connection has one request under way, 64 bytes for echo, a minimal GET for
 * http, and sends the next when the answer is complete. One thread and one epoll set. It is the
 * same client for every server, but its own cost bounds the rate of all of them, so it is kept low
 * (edge triggers); what the server costs is read from /proc/PID/stat before and after. `wake` sends
 * one message every 5 ms on a single connection: between two of them the server has gone idle and
 * sleeps in the kernel.
 *
 * Prints echo_100_rps, echo_100_p50, echo_100_p99 and, given a PID, echo_100_cpu (µs of CPU per
 * request). The first tenth of the time warms up and is not counted. A wrong answer, or a
 * connection that breaks, is the end with status 1: a fast server that lies is no server.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE = 64 };

struct conn {
    int fd;
    size_t have; /* bytes of the answer that have come */
    int64_t sent;
};

static const char *request, *kind;
static char message[MESSAGE];
static size_t request_len, answer_len;
static struct sockaddr_in server;
static Histogram answers;

_Noreturn static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the server's CPU ---------------------------------------------------------------------- */

/* Seconds of CPU the process has used; the fields 14 and 15 stand behind the name in brackets. */
static double cpu_of(int pid) {
    char path[64], text[1024], *end;
    unsigned long user, sys;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    end = strrchr(text, ')');
    if (!end ||
        sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
        fail(path);
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- connections --------------------------------------------------------------------------- */

static int connect_one(void) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct linger gone = {1, 0}; /* a reset at the end: thousands in TIME_WAIT eat the ports up */
    if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof server)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &gone, sizeof gone);
    return fd;
}

static void ask(struct conn *c) {
    c->have = 0;
    c->sent = now_ns();
    if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len) fail("send");
}

/* 1: the answer is complete. */
static int hear(struct conn *c) {
    char buf[512];
    ssize_t n = recv(c->fd, buf, sizeof buf, 0);
    if (n <= 0) fail("the server closed the connection");
    if (*kind != 'h' && memcmp(buf, message + c->have, (size_t)n)) fail("a wrong answer");
    c->have += (size_t)n;
    if (c->have > answer_len) fail("an answer too long");
    return c->have == answer_len;
}

static struct conn *connect_all(int n, int ep) {
    struct conn *all = must(calloc((size_t)n, sizeof *all));
    for (int i = 0; i < n; i++) {
        all[i].fd = connect_one();
        struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = &all[i]};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, all[i].fd, &ev)) fail("epoll_ctl");
    }
    return all;
}

/* Answers what comes until the time is over; counts it where `counted`, and then at least one, so
 * that a short time on a busy machine is no failure. */
static void drive(int ep, int64_t until, int counted) {
    struct epoll_event ev[256];
    for (int64_t now = now_ns(); now < until || (counted && !answers.count);) {
        int n = epoll_wait(ep, ev, 256, 100);
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (!hear(c)) continue;
            now = now_ns();
            if (counted) histogram_add(&answers, now - c->sent);
            ask(c);
        }
        if (n <= 0) now = now_ns();
    }
}

static void print(const char *what, double value, const char *unit, int conns) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d_%s", kind, conns, what);
    report(name, value, unit);
}

static int load(int conns, double seconds, int pid) {
    int ep = epoll_create1(0);
    struct conn *all = connect_all(conns, ep);
    for (int i = 0; i < conns; i++) ask(&all[i]);
    drive(ep, now_ns() + (int64_t)(seconds * 1e8), 0);
    double c0 = pid ? cpu_of(pid) : 0;
    int64_t t0 = now_ns();
    drive(ep, t0 + (int64_t)(seconds * 1e9), 1);
    double spent = (double)(now_ns() - t0) / 1e9, cpu = pid ? cpu_of(pid) - c0 : 0;
    print("rps", (double)answers.count / spent, "req/s", conns);
    print("p50", histogram_us(&answers, .5), "us", conns);
    print("p99", histogram_us(&answers, .99), "us", conns);
    if (pid) print("cpu", cpu * 1e6 / (double)answers.count, "us/req", conns);
    for (int i = 0; i < conns; i++) close(all[i].fd);
    free(all);
    return 0;
}

static int wake(int n) {
    struct conn c = {.fd = connect_one()};
    int64_t *took = must(calloc((size_t)n, sizeof *took));
    for (int i = 0; i < n; i++) {
        usleep(5000);
        ask(&c);
        while (!hear(&c)) {}
        took[i] = now_ns() - c.sent;
    }
    report_late("wake", took, (size_t)n);
    free(took);
    close(c.fd);
    return 0;
}

static void raise_limit(void) {
    struct rlimit rl;
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_NOFILE, &rl);
}

static int parse_address(const char *addr) {
    char host[64];
    const char *colon = strrchr(addr, ':');
    if (!colon) return 0;
    snprintf(host, sizeof host, "%.*s", (int)(colon - addr), addr);
    server =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    return inet_pton(AF_INET, *host ? host : "127.0.0.1", &server.sin_addr) == 1;
}

static int usage(void) {
    fprintf(stderr, "usage: load echo|http ADDR CONNECTIONS SECONDS [PID] | wake ADDR N\n");
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 4 || !parse_address(argv[2])) return usage();
    kind = argv[1];
    for (int i = 0; i < MESSAGE; i++) message[i] = (char)('0' + i);
    request = message, request_len = answer_len = MESSAGE;
    raise_limit();
    if (!strcmp(kind, "wake")) return wake(atoi(argv[3]));
    if (argc < 5 || atoi(argv[3]) < 1) return usage();
    if (!strcmp(kind, "http")) {
        request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        request_len = strlen(request);
        answer_len = strlen("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                            "Content-Length: 13\r\n\r\nHello, World!");
    } else if (strcmp(kind, "echo")) {
        return usage();
    }
    return load(atoi(argv[3]), atof(argv[4]), argc > 5 ? atoi(argv[5]) : 0);
}
