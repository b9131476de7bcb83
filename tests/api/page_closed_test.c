/* The program closes the live page's sockets behind its back and has its own under their numbers:
 * who connects there is served by the program alone, and the end of the runtime closes none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NUMBERS = 1200, CLIENTS = 20 };
static int number = -1;

static bool listens(int fd) {
    int yes = 0;
    socklen_t n = sizeof yes;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &n) == 0 && yes;
}

static void serves(void *arg) {
    for (int i = 0; i < CLIENTS; i++) {
        int fd = gort_accept(number, NULL, NULL);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_write(fd, "mine", 4), 4);
        gort_close(fd);
    }
}

/* The page's goroutine waits to accept. */
static void page_waits(const char *addr) {
    char answer[64];
    int fd = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(fd, 0);
    CHECK_GT(gort_write(fd, "GET /nowhere HTTP/1.0\r\n\r\n", 25), 0);
    while (gort_read(fd, answer, sizeof answer) > 0) continue;
    gort_close(fd);
}

static int body(int argc, char **argv) {
    char addr[64], page[64];
    int mine = gort_listen("127.0.0.1:0", CLIENTS);
    CHECK_EQ(gort_local_addr(mine, addr, sizeof addr), 0);
    CHECK_EQ(gort_debug_listen("127.0.0.1:0"), 0);
    for (int fd = 3; fd < NUMBERS; fd++)
        if (fd != mine && listens(fd)) number = fd;
    CHECK_GE(number, 0);
    CHECK_EQ(gort_local_addr(number, page, sizeof page), 0);
    page_waits(page);
    CHECK_EQ(dup2(mine, number), number);
    CHECK_EQ(gort_close(mine), 0);
    CHECK_EQ(gort_go(serves, NULL), 0);
    for (int i = 0; i < CLIENTS; i++) {
        char answer[8] = "";
        int fd = gort_dial(addr, GORT_FOREVER);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_read_full(fd, answer, 4), 4);
        CHECK_STR(answer, "mine");
        gort_close(fd);
    }
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(body, argc, argv), 0);
    CHECK(listens(number));
    return 0;
}
