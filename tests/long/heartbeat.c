/*
 * 64 goroutines read and fsync files at one P; a goroutine that sleeps 1 ms at a time tells how late it
 * comes back. Prints the lateness at p50, p99 and its maximum in microseconds, and how many file
 * operations were made meanwhile; the status is 1 if p99 is above 5 ms.
 *
 *     heartbeat DIRECTORY [SECONDS]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 64, BLOCK = 4096, BLOCKS = 64, MOST = 1 << 20 };
static int stop;
static long ops;
static const char *dir;
static gort_wg wg;

static void must(int ok, const char *what, long r) {
    if (ok) return;
    fprintf(stderr, "heartbeat: %s: %s\n", what, strerror((int)-r));
    _exit(2);
}

/* Writes a block, fsyncs, drops it from the cache so that the read goes to the disk, reads another. */
static void work(void *arg) {
    int k = (int)(intptr_t)arg;
    char path[256], buf[BLOCK];
    memset(buf, k, sizeof buf);
    snprintf(path, sizeof path, "%s/file.%d", dir, k);
    int fd = gort_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0, path, fd);
    unlink(path);
    for (int i = 0; i < BLOCKS; i++) must(gort_pwrite(fd, buf, BLOCK, (off_t)i * BLOCK) == BLOCK, "pwrite", -5);
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        off_t at = (off_t)(i * 7 % BLOCKS) * BLOCK;
        must(gort_pwrite(fd, buf, BLOCK, at) == BLOCK, "pwrite", -5);
        must(gort_fsync(fd) == 0, "fsync", -5);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        must(gort_pread(fd, buf, BLOCK, (off_t)(i * 13 % BLOCKS) * BLOCK) == BLOCK && buf[0] == (char)k, "pread", -5);
        __atomic_add_fetch(&ops, 3, __ATOMIC_RELAXED);
    }
    gort_close(fd);
}

static int64_t late[MOST];
static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int run(int argc, char **argv) {
    int64_t end = gort_now() + (argc > 2 ? atoi(argv[2]) : 5) * GORT_SEC;
    size_t n = 0;
    dir = argv[1];
    gort_maxprocs(1);
    for (int i = 0; i < WORKERS; i++) must(gort_wg_go(&wg, work, (void *)(intptr_t)i) == 0, "go", -12);
    gort_sleep(200 * GORT_MS); /* the files are written */
    while (gort_now() < end && n < MOST) {
        int64_t due = gort_now() + GORT_MS;
        gort_sleep_until(due);
        late[n++] = gort_now() - due;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    gort_wg_wait(&wg);
    qsort(late, n, sizeof *late, compare);
    int64_t p99 = late[n * 99 / 100];
    printf("%zu beats, late p50 %lld us, p99 %lld us, most %lld us; %ld operations on files\n", n,
           (long long)late[n / 2] / 1000, (long long)p99 / 1000, (long long)late[n - 1] / 1000, ops);
    return p99 > 5 * GORT_MS;
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: heartbeat DIRECTORY [SECONDS]\n"), 2;
    return gort_main(run, argc, argv);
}
