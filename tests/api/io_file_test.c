#define _GNU_SOURCE 1
/* Regular files: positions, offsets, ends, many at once; with and without io_uring. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <sys/stat.h>

static char path[64];
static int done;

static void test_basic(void) {
    char b[32];
    int fd = gort_open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_write(fd, "0123456789", 10), 10);
    CHECK_EQ(gort_pread(fd, b, 4, 3), 4);
    CHECK(memcmp(b, "3456", 4) == 0);
    CHECK_EQ(gort_pread(fd, b, 32, 3), 7);
    CHECK_EQ(gort_pread(fd, b, 32, 100), 0);
    CHECK_EQ(gort_pread(fd, b, 32, -1), -EINVAL);
    CHECK_EQ(gort_pwrite(fd, "xy", 2, -5), -EINVAL);
    CHECK_EQ(gort_pwrite(fd, "xy", 2, 4), 2);
    CHECK_EQ(gort_fsync(fd), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(gort_read(fd, b, 6), 6);
    CHECK(memcmp(b, "0123xy", 6) == 0);
    CHECK_EQ(gort_read_until(fd, b, 32, 0), 4); /* a deadline is ignored */
    CHECK_EQ(gort_read(fd, b, 32), 0);
    struct iovec v[2] = {{(void *)"ab", 2}, {(void *)"cd", 2}}, w[2] = {{b, 3}, {b + 3, 20}};
    CHECK_EQ(gort_writev(fd, v, 2), 4);
    CHECK_EQ(lseek(fd, 8, SEEK_SET), 8);
    CHECK_EQ(gort_readv(fd, w, 2), 6);
    CHECK(memcmp(b, "89abcd", 6) == 0);
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
    CHECK_EQ(gort_poll(&p, 1, -1), 1);
    CHECK_EQ(gort_close(fd), 0);
    CHECK_EQ(gort_pread(fd, b, 1, 0), -EBADF);
    CHECK_EQ(gort_fsync(fd), -EBADF);
    CHECK_EQ(gort_open("/nonexistent/file", O_RDONLY, 0), -ENOENT);
    fd = gort_open("/tmp", O_RDONLY | O_DIRECTORY, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_read(fd, b, 1), -EISDIR);
    CHECK_EQ(gort_close(fd), 0);
}

#define WORKERS 64
#define BLOCK 4096
static int shared;

static void worker(void *arg) {
    intptr_t k = (intptr_t)arg;
    unsigned char b[BLOCK], c[BLOCK];
    memset(b, (int)k, sizeof b);
    for (int i = 0; i < 4; i++) {
        off_t at = (off_t)(k * 4 + i) * BLOCK;
        CHECK_EQ(gort_pwrite(shared, b, BLOCK, at), BLOCK);
        if (i == 2) CHECK_EQ(gort_fsync(shared), 0);
        CHECK_EQ(gort_pread(shared, c, BLOCK, at), BLOCK);
        CHECK(memcmp(b, c, BLOCK) == 0);
    }
    add(&done, 1);
}

static void test_many(void) {
    shared = gort_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_GE(shared, 0);
    set(&done, 0);
    for (intptr_t i = 0; i < WORKERS; i++) gort_go(worker, (void *)i);
    wait_until(get(&done) == WORKERS);
    struct stat st;
    CHECK_EQ(fstat(shared, &st), 0);
    CHECK_EQ(st.st_size, WORKERS * 4 * BLOCK);
    CHECK_EQ(gort_close(shared), 0);
}

/* Bytes that are not in the page cache. */
static void test_cold(void) {
    static unsigned char b[64 * BLOCK];
    int fd = gort_open(path, O_RDONLY, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(fdatasync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    CHECK_EQ(gort_pread(fd, b, sizeof b, 0), sizeof b);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    CHECK_EQ(gort_read_full(fd, b, sizeof b), sizeof b);
    for (size_t i = 0; i < sizeof b; i++) CHECK_EQ(b[i], (unsigned char)(i / BLOCK / 4));
    CHECK_EQ(gort_close(fd), 0);
}

/* One position, several readers: every record comes out once. */
#define RECORDS 2000
static int seen[RECORDS];
static void record_reader(void *arg) {
    uint32_t v;
    while (gort_read(shared, &v, sizeof v) == sizeof v) CHECK_EQ(add(&seen[v], 1), 1);
    add(&done, 1);
}
static void test_position(void) {
    static uint32_t all[RECORDS];
    for (uint32_t i = 0; i < RECORDS; i++) all[i] = i;
    shared = gort_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(gort_write_full(shared, all, sizeof all), sizeof all);
    CHECK_EQ(lseek(shared, 0, SEEK_SET), 0);
    set(&done, 0);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 8; i++) gort_go(record_reader, NULL);
    wait_until(get(&done) == 8);
    for (int i = 0; i < RECORDS; i++) CHECK_EQ(seen[i], 1);
    CHECK_EQ(gort_close(shared), 0);
}

/* Closed and opened again under operations: each ends with its own file's bytes, or -EBADF. */
static void reopener(void *arg) {
    for (int i = 0; i < 200; i++) {
        unsigned char b[64];
        int fd = gort_open(path, O_RDWR, 0);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_pread(fd, b, sizeof b, 0), sizeof b);
        CHECK_EQ(gort_pwrite(fd, b, sizeof b, 0), sizeof b);
        CHECK_EQ(gort_close(fd), 0);
    }
    add(&done, 1);
}
static void test_reopen(void) {
    set(&done, 0);
    for (int i = 0; i < 4; i++) gort_go(reopener, NULL);
    wait_until(get(&done) == 4);
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_basic();
    test_many();
    test_cold();
    test_position();
    test_reopen();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) {
    snprintf(path, sizeof path, "/var/tmp/gort_file_%d", (int)getpid());
    CHECK_EQ(gort_main(run, argc, argv), 0);
    setenv("GORT_DEBUG", "uring=0", 1);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    unlink(path);
    return 0;
}
