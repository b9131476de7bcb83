/*
 * 64 goroutines read and fsync files at one P; a goroutine that sleeps 1 ms at a time tells how
 *    late it
 * comes back. Beside it a plain thread, which has nothing to do with the runtime, does the same:
 * how late that is is the machine's doing, by others who work there and by the kernel's own threads
 * for the files. Prints the lateness of both at p50, p99 and its maximum in microseconds, and how
 * many file operations were made meanwhile; the status is 1 if the goroutine's p99 is more than 5
 * ms above the thread's.
 *
 *     heartbeat DIRECTORY [SECONDS]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <gort.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* Writes a block, fsyncs, drops it from the cache so that the read goes to the disk, reads
 * another. */
static void work(void *arg) {
    int k = (int)(intptr_t)arg;
    char path[256], buf[BLOCK];
    memset(buf, k, sizeof buf);
    snprintf(path, sizeof path, "%s/file.%d", dir, k);
    int fd = gort_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0, path, fd);
    unlink(path);
    for (int i = 0; i < BLOCKS; i++)
        must(gort_pwrite(fd, buf, BLOCK, (off_t)i * BLOCK) == BLOCK, "pwrite", -5);
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        off_t at = (off_t)(i * 7 % BLOCKS) * BLOCK;
        must(gort_pwrite(fd, buf, BLOCK, at) == BLOCK, "pwrite", -5);
        must(gort_fsync(fd) == 0, "fsync", -5);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        must(gort_pread(fd, buf, BLOCK, (off_t)(i * 13 % BLOCKS) * BLOCK) == BLOCK &&
                 buf[0] == (char)k,
             "pread", -5);
        __atomic_add_fetch(&ops, 3, __ATOMIC_RELAXED);
    }
    gort_close(fd);
}

typedef struct Beats {
    size_t n;
    int64_t late[MOST];
} Beats;
static Beats of_goroutine, of_thread;

static void beat(Beats *b, void (*sleep_until)(int64_t)) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && b->n < MOST) {
        int64_t due = gort_now() + GORT_MS;
        sleep_until(due);
        b->late[b->n++] = gort_now() - due;
    }
}
static void plain_sleep(int64_t until) {
    struct timespec t = {until / GORT_SEC, until % GORT_SEC};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static void *beats_thread(void *arg) {
    beat(&of_thread, plain_sleep);
    return NULL;
}
static void beats(void *arg) { beat(&of_goroutine, gort_sleep_until); }

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}
static int64_t tell(const char *who, Beats *b) {
    qsort(b->late, b->n, sizeof *b->late, compare);
    int64_t p99 = b->late[b->n * 99 / 100];
    printf("%s: %zu beats, late p50 %lld us, p99 %lld us, most %lld us; ", who, b->n,
           (long long)b->late[b->n / 2] / 1000, (long long)p99 / 1000,
           (long long)b->late[b->n - 1] / 1000);
    return p99;
}

static long joins(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }

static int run(int argc, char **argv) {
    pthread_t thread;
    dir = argv[1];
    gort_maxprocs(1);
    for (int i = 0; i < WORKERS; i++)
        must(gort_wg_go(&wg, work, (void *)(intptr_t)i) == 0, "go", -12);
    gort_sleep(200 * GORT_MS); /* the files are written */
    must(pthread_create(&thread, NULL, beats_thread, NULL) == 0, "pthread_create", -11);
    must(gort_wg_go(&wg, beats, NULL) == 0, "go", -12);
    gort_sleep((argc > 2 ? atoi(argv[2]) : 20) * GORT_SEC);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    gort_wg_wait(&wg);
    gort_blocking(joins, &thread);
    int64_t ours = tell("goroutine", &of_goroutine), machines = tell("thread", &of_thread);
    printf("%ld operations on files\n", ops);
    return ours - machines > 5 * GORT_MS;
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: heartbeat DIRECTORY [SECONDS]\n"), 2;
    return gort_main(run, argc, argv);
}
