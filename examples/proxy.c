/*
 * A TCP proxy: every connection is forwarded, both ways at once, half-closes included.
 *
 *     cc proxy.c -Iinclude build/libgort.a -lpthread -o proxy
 *     ./proxy 127.0.0.1:9000 127.0.0.1:8080      listens on the first, forwards to the second
 */
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *target;

struct way {
    int from, to;
};

/* Copies until the end, by splice(2) where that works, and passes the end on. */
static void copy(void *arg) {
    struct way *w = arg;
    ssize_t n = gort_copy(w->to, w->from);
    if (n >= 0) gort_shutdown(w->to, SHUT_WR); /* an error: it is shut already */
    else
        gort_shutdown(w->to, SHUT_RDWR), gort_shutdown(w->from, SHUT_RDWR); /* ends the other way */
}

static void serve(void *arg) {
    int client = (int)(intptr_t)arg;
    int server = gort_dial(target, gort_now() + 10 * GORT_SEC);
    if (server >= 0) {
        struct way there = {client, server}, back = {server, client};
        gort_wg both = {0};
        if (gort_wg_go(&both, copy, &there) == 0) copy(&back);
        gort_wg_wait(&both);
        gort_close(server);
    } else {
        fprintf(stderr, "proxy: %s: %s\n", target, gort_addr_strerror(target, server));
    }
    gort_close(client);
}

static int run(int argc, char **argv) {
    char addr[64];
    if (argc != 3) return fprintf(stderr, "usage: proxy LISTEN TARGET\n"), 2;
    target = argv[2];
    int listener = gort_listen(argv[1], 0);
    if (listener < 0) {
        fprintf(stderr, "proxy: %s: %s\n", argv[1], gort_addr_strerror(argv[1], listener));
        return 1;
    }
    int err = gort_local_addr(listener, addr, sizeof addr);
    if (err < 0) return fprintf(stderr, "proxy: %s\n", strerror(-err)), 1;
    printf("forwarding %s to %s\n", addr, target);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd == -EMFILE || fd == -ENFILE) gort_sleep(10 * GORT_MS);
        else if (fd < 0) return 1;
        else if (gort_go(serve, (void *)(intptr_t)fd) < 0) gort_close(fd);
    }
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
