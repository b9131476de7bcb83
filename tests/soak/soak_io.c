/*
 * The soak's descriptors: connections that come and go, pairs that stay, readers that are closed
 * on, files.
 */
#define _GNU_SOURCE
#include "soak.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a server and its clients ---------------------------------------------------------------- */

static void serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[512];
    for (ssize_t n; (n = gort_read(fd, buf, sizeof buf)) > 0;)
        CHECK_EQ(gort_write_full(fd, buf, (size_t)n), n);
    gort_close(fd);
}

static void accepts(void *arg) {
    int listener = (int)(intptr_t)arg, fd;
    gort_wg wg = {0};
    while ((fd = gort_accept(listener, NULL, NULL)) >= 0)
        CHECK_EQ(gort_wg_go(&wg, serve, (void *)(intptr_t)fd), 0);
    CHECK_EQ(fd, -EBADF);
    gort_wg_wait(&wg);
}

typedef struct Client {
    Part *part;
    const char *where;
    uint64_t seed;
} Client;

static void client(void *arg) {
    Client *me = arg;
    while (!soak_over()) {
        int fd = gort_dial(me->where, gort_now() + 300 * GORT_SEC);
        CHECKF(fd >= 0, "dial: %d", fd);
        for (int i = 0, n = (int)(test_random(&me->seed) % 20); i < n; i++) {
            uint64_t out[40], in[40];
            size_t size = sizeof out[0] * (1 + test_random(&me->seed) % 40);
            for (size_t k = 0; k < size / 8; k++) out[k] = test_random(&me->seed);
            CHECK_EQ(gort_write_full(fd, out, size), size);
            CHECK_EQ(gort_read_full(fd, in, size), size);
            CHECK(memcmp(in, out, size) == 0);
        }
        CHECK_EQ(gort_close(fd), 0);
        /* ports in TIME_WAIT are finite */
        gort_sleep((int64_t)(test_random(&me->seed) % 30) * GORT_MS);
        soak_round(me->part);
    }
}

static void tcp_run(Part *part, uint64_t seed) {
    char where[64];
    int listener = gort_listen("127.0.0.1:0", 128);
    CHECK_GE(listener, 0);
    CHECK_GE(gort_local_addr(listener, where, sizeof where), 0);
    gort_wg clients = {0}, server = {0};
    Client c[6];
    CHECK_EQ(gort_wg_go(&server, accepts, (void *)(intptr_t)listener), 0);
    for (int i = 0; i < 6; i++) {
        c[i] = (Client){part, where, seed + (uint64_t)i};
        CHECK_EQ(gort_wg_go(&clients, client, &c[i]), 0);
    }
    gort_wg_wait(&clients);
    CHECK_EQ(gort_close(listener), 0);
    gort_wg_wait(&server);
}

/* ---- pairs: deadlines, and a close under a reader -------------------------------------------- */

typedef struct Reader {
    int fd;
    ssize_t result;
} Reader;

static void reads(void *arg) {
    Reader *r = arg;
    char two[2];
    r->result = gort_read_full(r->fd, two, 2);
}

static int unread(int fd) {
    int n = 0;
    CHECK_EQ(ioctl(fd, FIONREAD, &n), 0);
    return n;
}

static void pairs_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        int s[2];
        char c = 'x';
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
        CHECK_EQ(gort_read_until(s[0], &c, 1,
                                 gort_now() + (int64_t)(test_random(&seed) % 2000) * GORT_US),
                 -ETIMEDOUT);
        Reader r = {s[0], 0};
        gort_wg wg = {0};
        CHECK_EQ(gort_wg_go(&wg, reads, &r), 0);
        CHECK_EQ(gort_write(s[1], &c, 1), 1);
        wait_until(unread(s[0]) == 0); /* it is in its call, half done */
        bool tell = test_random(&seed) % 2;
        if (tell) CHECK_EQ(gort_write(s[1], &c, 1), 1);
        else CHECK_EQ(gort_close(s[0]), 0);
        gort_wg_wait(&wg);
        CHECK(tell ? r.result == 2 : r.result == -EBADF);
        if (tell) CHECK_EQ(gort_close(s[0]), 0);
        CHECK_EQ(gort_close(s[1]), 0);
        soak_round(part);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void files_run(Part *part, uint64_t seed) {
    char path[] = "/tmp/gort-soak-XXXXXX";
    int fd = mkstemp(path);
    CHECK_GE(fd, 0);
    unlink(path);
    while (!soak_over()) {
        uint64_t out[64], in[64];
        off_t at = (off_t)(test_random(&seed) % 256) * 512;
        for (int i = 0; i < 64; i++) out[i] = test_random(&seed);
        CHECK_EQ(gort_pwrite(fd, out, sizeof out, at), sizeof out);
        CHECK_EQ(gort_pread(fd, in, sizeof in, at), sizeof in);
        CHECK(memcmp(in, out, sizeof in) == 0);
        gort_sleep((int64_t)(test_random(&seed) % 3) * GORT_MS);
        soak_round(part);
    }
    CHECK_EQ(gort_close(fd), 0);
}

Part soak_io[] = {{"tcp", tcp_run, NULL, 0, 0, 0, 0},
                  {"pairs", pairs_run, NULL, 0, 0, 0, 0},
                  {"files", files_run, NULL, 0, 0, 0, 0},
                  {0}};
