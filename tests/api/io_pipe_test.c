/* Pipes and FIFOs: bytes arrive in order, a reader and a writer block only themselves, ends
 * show. */
#include "../lib/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int p[2];
static int woken;

static void reader(void *arg) {
    char b[8];
    CHECK_EQ(gort_read(p[0], b, sizeof b), 5);
    CHECK(memcmp(b, "hello", 5) == 0);
    set(&woken, 1);
}

/* A parked reader is woken by data. */
static void test_wakes(void) {
    CHECK_EQ(pipe(p), 0);
    set(&woken, 0);
    gort_go(reader, NULL);
    for (int i = 0; i < 10; i++) gort_yield();
    CHECK_EQ(get(&woken), 0);
    CHECK_EQ(gort_write(p[1], "hello", 5), 5);
    wait_until(get(&woken));
    CHECK_EQ(gort_close(p[1]), 0);
    char b;
    CHECK_EQ(gort_read(p[0], &b, 1), 0);
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_close(p[0]), -EBADF);
}

#define TOTAL (1 << 20)

static void writer(void *arg) {
    unsigned char *b = malloc(TOTAL);
    for (int i = 0; i < TOTAL; i++) b[i] = (unsigned char)(i * 7);
    CHECK_EQ(gort_write_full(p[1], b, TOTAL), TOTAL);
    free(b);
    CHECK_EQ(gort_close(p[1]), 0);
}

/* More than the pipe holds: writer and reader take turns. */
static void test_bulk(void) {
    unsigned char b[3000];
    size_t at = 0;
    CHECK_EQ(pipe(p), 0);
    gort_go(writer, NULL);
    for (;;) {
        ssize_t n = gort_read(p[0], b, sizeof b);
        CHECK_GE(n, 0);
        if (n == 0) break;
        for (ssize_t i = 0; i < n; i++, at++) CHECK_EQ(b[i], (unsigned char)(at * 7));
    }
    CHECK_EQ(at, TOTAL);
    CHECK_EQ(gort_close(p[0]), 0);
}

static void test_vectors(void) {
    char a[3], b[4];
    struct iovec out[2] = {{(void *)"abc", 3}, {(void *)"defg", 4}}, in[2] = {{a, 3}, {b, 4}};
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_writev(p[1], out, 2), 7);
    CHECK_EQ(gort_readv(p[0], in, 2), 7);
    CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defg", 4) == 0);
    CHECK_EQ(gort_readv(p[0], in, -1), -EINVAL);
    CHECK_EQ(gort_read(p[1], a, 1), -EBADF);
    CHECK_EQ(gort_write(p[0], a, 1), -EBADF);
    CHECK_EQ(gort_read(-1, a, 1), -EBADF);
    CHECK_EQ(gort_read(19999, a, 1), -EBADF);
    CHECK_EQ(gort_recv(p[0], a, 1, 0), -ENOTSOCK);
    CHECK_EQ(gort_pread(p[0], a, 1, 0), -ESPIPE);
    CHECK_EQ(gort_pwrite(p[1], a, 1, 0), -ESPIPE);
    CHECK_EQ(gort_fsync(p[1]), -EINVAL);
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_write(p[1], "x", 1), -EPIPE);
    CHECK_EQ(gort_close(p[1]), 0);
}

static void test_full(void) {
    char b[10];
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_write(p[1], "1234", 4), 4);
    CHECK_EQ(gort_close(p[1]), 0);
    CHECK_EQ(gort_read_full(p[0], b, 3), 3);
    CHECK_EQ(gort_read_full(p[0], b, 3), -ENODATA);
    CHECK_EQ(gort_read_full(p[0], b, 0), 0);
    CHECK_EQ(gort_close(p[0]), 0);
}

#define READERS 8
#define ITEMS 4000
static int seen[ITEMS], readers_left;

static void item_reader(void *arg) {
    uint32_t v;
    ssize_t n;
    while ((n = gort_read(p[0], &v, sizeof v)) > 0) {
        CHECK_EQ(n, sizeof v);
        CHECK_EQ(add(&seen[v], 1), 1);
    }
    CHECK_EQ(n, 0);
    add(&readers_left, -1);
}

/* Several readers of one pipe: every item comes out once, and every reader sees the end. */
static void test_readers(void) {
    CHECK_EQ(pipe(p), 0);
    set(&readers_left, READERS);
    for (int i = 0; i < READERS; i++) gort_go(item_reader, NULL);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK_EQ(gort_write(p[1], &i, sizeof i), sizeof i);
        if (i % 64 == 0) gort_yield();
    }
    CHECK_EQ(gort_close(p[1]), 0);
    wait_until(get(&readers_left) == 0);
    for (int i = 0; i < ITEMS; i++) CHECK_EQ(seen[i], 1);
    CHECK_EQ(gort_close(p[0]), 0);
}

/* One write of many items with all readers parked: one edge, and still all are served. */
static void test_one_edge(void) {
    uint32_t all[READERS];
    memset(seen, 0, sizeof seen);
    CHECK_EQ(pipe(p), 0);
    set(&readers_left, READERS);
    for (int i = 0; i < READERS; i++) gort_go(item_reader, NULL);
    for (int i = 0; i < 20; i++) gort_yield();
    for (uint32_t i = 0; i < READERS; i++) all[i] = i;
    CHECK_EQ(gort_write(p[1], all, sizeof all), sizeof all);
    for (int i = 0; i < READERS; i++) wait_until(get(&seen[i]));
    CHECK_EQ(gort_close(p[1]), 0);
    wait_until(get(&readers_left) == 0);
    CHECK_EQ(gort_close(p[0]), 0);
}

static char fifo[64];
static int opened;

static void fifo_writer(void *arg) {
    int fd = gort_open(fifo, O_WRONLY, 0);
    CHECK_GE(fd, 0);
    add(&opened, 1);
    CHECK_EQ(gort_write_full(fd, "through the fifo", 16), 16);
    CHECK_EQ(gort_close(fd), 0);
}

/* Opening blocks the goroutine only. */
static void test_fifo(void) {
    char b[32];
    snprintf(fifo, sizeof fifo, "/tmp/gort_fifo_%d", (int)getpid());
    unlink(fifo);
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    gort_go(fifo_writer, NULL);
    for (int i = 0; i < 100; i++) gort_yield();
    CHECK_EQ(get(&opened), 0);
    int fd = gort_open(fifo, O_RDONLY, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_read_full(fd, b, 16), 16);
    CHECK(memcmp(b, "through the fifo", 16) == 0);
    CHECK_EQ(gort_read(fd, b, 1), 0);
    CHECK_EQ(gort_close(fd), 0);
    unlink(fifo);
}

/* The program made it non-blocking, or clears what the runtime may have set: no EAGAIN, and no
 * blocked thread. */
static void test_flags(void) {
    for (int flag = 0; flag < 2; flag++) {
        CHECK_EQ(pipe(p), 0);
        set(&woken, 0);
        CHECK_EQ(fcntl(p[0], F_SETFL, flag ? O_NONBLOCK : 0), 0);
        gort_go(reader, NULL);
        for (int i = 0; i < 10; i++) gort_yield();
        CHECK_EQ(fcntl(p[0], F_SETFL, 0), 0);
        CHECK_EQ(gort_write(p[1], "hello", 5), 5);
        wait_until(get(&woken));
        set(&woken, 0);
        gort_go(reader, NULL);
        for (int i = 0; i < 10; i++) gort_yield();
        CHECK_EQ(gort_write(p[1], "hello", 5), 5);
        wait_until(get(&woken));
        gort_close(p[0]), gort_close(p[1]);
    }
}

static int run(int argc, char **argv) {
    test_wakes();
    test_bulk();
    test_vectors();
    test_full();
    test_readers();
    test_one_edge();
    test_fifo();
    test_flags();
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
