/*
 * A small HTTP/1.1 server: keep-alive, pipelining, a deadline for slow clients.
 *
 *     cc http.c -Iinclude build/libgort.a -lpthread -o http
 *     ./http 127.0.0.1:8080        then: curl http://127.0.0.1:8080/ or wrk -c100 http://...
 */
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define IDLE (60 * GORT_SEC) /* how long a connection may be quiet */

static const char hello[] = "Hello, World!\n";

/* Is there a header line `name: ...value...` in the request? */
static int header_has(const char *head, const char *name, const char *value) {
    size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':') continue;
        const char *end = strstr(line, "\r\n");
        for (const char *s = line + n; s && s < end; s++)
            if (strncasecmp(s, value, strlen(value)) == 0) return 1;
    }
    return 0;
}

/* Answers one request into out; *more: the connection stays open. */
static int answer(const char *head, char *out, size_t room, int *more) {
    int get = strncmp(head, "GET ", 4) == 0, old = strstr(head, " HTTP/1.0\r\n") != NULL;
    const char *body = get ? hello : "";
    if (!strstr(head, " HTTP/1.")) *more = 0;
    else
        *more = old ? header_has(head, "Connection", "keep-alive")
                    : !header_has(head, "Connection", "close");
    return snprintf(
        out, room, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s",
        get ? "200 OK" : "405 Method Not Allowed", strlen(body),
        *more ? old ? "Connection: keep-alive\r\n" : "" : "Connection: close\r\n", body);
}

/* Requests that came together are answered together: one write for a whole pipeline. */
static void serve(void *arg) {
    int fd = (int)(intptr_t)arg, more = 1;
    char in[8192], out[4096];
    size_t have = 0;
    while (more && have < sizeof in - 1) {
        ssize_t n = gort_read_until(fd, in + have, sizeof in - 1 - have, gort_now() + IDLE);
        if (n <= 0) break;
        have += (size_t)n;
        in[have] = 0;
        char *head = in, *end;
        size_t ready = 0;
        while (more && (end = strstr(head, "\r\n\r\n")) != NULL) {
            char after = end[4];
            end[4] = 0;
            if (sizeof out - ready < 256) {
                if (gort_write_full(fd, out, ready) < 0) goto out;
                ready = 0;
            }
            ready += (size_t)answer(head, out + ready, sizeof out - ready, &more);
            end[4] = after;
            head = end + 4;
        }
        have -= (size_t)(head - in);
        memmove(in, head, have);
        if (ready > 0 && gort_write_full(fd, out, ready) < 0) break;
    }
out:
    gort_close(fd);
}

static int run(int argc, char **argv) {
    char addr[64];
    const char *where = argc > 1 ? argv[1] : "127.0.0.1:8080";
    int listener = gort_listen(where, 0);
    int err = listener < 0 ? listener : gort_local_addr(listener, addr, sizeof addr);
    if (err < 0) return fprintf(stderr, "http: %s: %s\n", where, gort_addr_strerror(where, err)), 1;
    printf("listening on http://%s/\n", addr);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd == -EMFILE || fd == -ENFILE) gort_sleep(10 * GORT_MS);
        else if (fd < 0) return fprintf(stderr, "http: accept: %s\n", strerror(-fd)), 1;
        else if (gort_go(serve, (void *)(intptr_t)fd) < 0) gort_close(fd);
    }
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
