/*
 * An echo server: a goroutine per connection, plain blocking calls.
 *
 *     cc echo.c -Iinclude build/libgort.a -lpthread -o echo
 *     ./echo 127.0.0.1:7777        then, elsewhere: nc 127.0.0.1 7777
 *     ./echo                       any free port, and a client of its own: prints "ok" and ends
 */
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[4096];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0)
        if (gort_write_full(fd, buf, (size_t)n) < 0) break;
    gort_close(fd);
}

static void accept_loop(void *arg) {
    int listener = (int)(intptr_t)arg;
    for (;;) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd == -EMFILE || fd == -ENFILE) {
            gort_sleep(10 * GORT_MS); /* the connection waits in the queue */
            continue;
        }
        if (fd < 0) break;
        if (gort_go(serve, (void *)(intptr_t)fd) < 0) gort_close(fd);
    }
}

/* Talks to the server for a moment. */
static int try_it(const char *addr) {
    char answer[6] = "";
    ssize_t n = 0;
    int fd = gort_dial(addr, gort_now() + 10 * GORT_SEC);
    if (fd < 0) return fd;
    for (int i = 0; i < 1000 && n >= 0; i++)
        if ((n = gort_write_full(fd, "hello", 5)) >= 0 &&
            (n = gort_read_full(fd, answer, 5)) >= 0 && strcmp(answer, "hello") != 0)
            n = -EPROTO;
    gort_close(fd);
    if (n >= 0) puts("ok");
    return n < 0 ? (int)n : 0;
}

static int run(int argc, char **argv) {
    char addr[64];
    const char *where = argc > 1 ? argv[1] : "127.0.0.1:0";
    int listener = gort_listen(where, 0);
    if (listener < 0) {
        fprintf(stderr, "echo: %s: %s\n", where, gort_addr_strerror(where, listener));
        return 1;
    }
    int err = gort_local_addr(listener, addr, sizeof addr);
    if (argc > 1 && err == 0) {
        printf("listening on %s\n", addr);
        fflush(stdout);
        accept_loop((void *)(intptr_t)listener);
        return 0;
    }
    if (err == 0) err = gort_go(accept_loop, (void *)(intptr_t)listener);
    if (err == 0) err = try_it(addr);
    if (err < 0) fprintf(stderr, "echo: %s: %s\n", addr, gort_addr_strerror(addr, err));
    return err != 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
