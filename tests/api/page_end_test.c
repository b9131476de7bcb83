/*
 * A runtime ends while the live page answers. What the page's goroutines hold then is the library's
 * own, and goes with the runtime: a program that starts hundreds of them does not grow.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../stress/growth.h"

#include <malloc.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Answers that no socket's buffer takes: their goroutines wait with all they have made. */
enum { CROWD = 3000, ROUNDS = 24, WARM = 8, CLIENTS = 4 };
static const char *const paths[CLIENTS] = {"goroutines?format=json&limit=100000", "goroutines",
                                           "debug/pprof/goroutine?debug=1", "events"};
static char address[64];
static int clients[CLIENTS];

static int ask(const char *path) {
    char text[200];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), small = 1;
    size_t len = strlen(address + 5);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    memcpy(un.sun_path, address + 5, len);
    un.sun_path[0] = 0;
    CHECK_EQ(connect(fd, (struct sockaddr *)&un,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
             0);
    int n = snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    CHECK_EQ(write(fd, text, (size_t)n), n);
    return fd;
}

static void waits(void *arg) { gort_chan_recv(NULL, NULL); }

/* The answer has begun: its text is made, or is being made. */
static bool answers(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static int body(int argc, char **argv) {
    snprintf(address, sizeof address, "unix:@page-end-%d", (int)getpid());
    CHECK_EQ(gort_debug_listen(address), 0);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(waits, NULL), 0);
    for (int i = 0; i < CLIENTS; i++) clients[i] = ask(paths[i]);
    for (int i = 0; i < CLIENTS; i++) wait_until(answers(clients[i]));
    return 0;
}

static long allocated(void) {
    struct mallinfo2 m = mallinfo2();
    return (long)(m.uordblks + m.hblkhd);
}

int main(void) {
    long before = 0, bytes = 0;
    growth_begin();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(gort_main(body, 0, NULL), 0);
        for (int k = 0; k < CLIENTS; k++) close(clients[k]);
        if (i == WARM) before = allocated(), bytes = mapped();
    }
    CHECK_LT(allocated() - before, 1 << 20);
    if (GROWTH_MEMORY) CHECK_LT(mapped() - bytes, 8 << 20);
    return 0;
}
