/*
 * Fetches many pages at once, at most LIMIT at a time, each within its deadline.
 *
 *     cc get.c -Iinclude build/libgort.a -lpthread -o get
 *     ./get http://127.0.0.1:8080/ http://localhost/a http://localhost/b ...
 *
 * Prints a line for each, in the order they finish: status, bytes, milliseconds, address.
 */
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 100
#define PATIENCE (30 * GORT_SEC)

struct answer {
    const char *url;
    char addr[256]; /* for gort_dial */
    int status;     /* of HTTP, or -errno */
    size_t bytes;
    int64_t took;
};
GORT_CHAN_TYPE(answers, struct answer)

static answers *results;
static gort_sem slots;

/* http://host[:port]/path into what gort_dial wants, and the path. */
static int split(const char *url, char *host, char *addr, size_t size, const char **path) {
    if (strncmp(url, "http://", 7) != 0) return -EPROTONOSUPPORT;
    url += 7;
    size_t n = strcspn(url, "/");
    if (n == 0 || n >= size - 4) return -EINVAL;
    *path = url[n] ? url + n : "/";
    memcpy(host, url, n);
    host[n] = 0;
    snprintf(addr, size, strrchr(host, ':') > strrchr(host, ']') ? "%s" : "%s:80", host);
    return 0;
}

static int fetch(struct answer *a, int64_t deadline) {
    char host[256], buf[16384];
    const char *path;
    int r = split(a->url, host, a->addr, sizeof a->addr, &path);
    if (r < 0) return r;
    int fd = gort_dial(a->addr, deadline), status = -EPROTO;
    if (fd < 0) return fd;
    int n = snprintf(buf, sizeof buf, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                     path, host);
    ssize_t k = n < (int)sizeof buf ? gort_write_full_until(fd, buf, (size_t)n, deadline) : -E2BIG;
    while (k > 0 && (k = gort_read_until(fd, buf, sizeof buf - 1, deadline)) > 0) {
        buf[k] = 0;
        if (a->bytes == 0) sscanf(buf, "HTTP/1.%*d %d", &status);
        a->bytes += (size_t)k;
    }
    gort_close(fd);
    return k < 0 ? (int)k : status;
}

static void get(void *arg) {
    struct answer a = {.url = arg};
    gort_sem_acquire(&slots, 1);
    int64_t start = gort_now();
    a.status = fetch(&a, start + PATIENCE);
    a.took = gort_now() - start;
    gort_sem_release(&slots, 1);
    answers_send(results, a);
}

static int run(int argc, char **argv) {
    int failed = 0;
    if (argc < 2) return fprintf(stderr, "usage: get URL...\n"), 2;
    results = answers_new(16);
    gort_sem_release(&slots, LIMIT);
    for (int i = 1; i < argc; i++)
        if (results == NULL || gort_go(get, argv[i]) < 0) return fprintf(stderr, "no memory\n"), 1;
    for (int i = 1; i < argc; i++) {
        struct answer a;
        answers_recv(results, &a);
        if (a.status < 0) printf("%-22s", gort_addr_strerror(a.addr, a.status));
        else printf("%d %18zu", a.status, a.bytes);
        printf(" %6lld ms  %s\n", (long long)(a.took / GORT_MS), a.url);
        failed += a.status < 200 || a.status > 399;
    }
    answers_release(results);
    return failed > 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
