/* A FILE's lock, held over waits: by flockfile over a sleep, where more threads wait for it than
 * there may be kernel threads; by libc over a read of a pipe that is empty and a write to one that
 * is full. Nothing hangs, and no line is torn. */
#include "threads_test.h"

#include <fcntl.h>

enum { THREADS = 60, ROUNDS = 3 };
static FILE *file;
static int inside; /* with the lock */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void run(void *(*fn)(void *), int n) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < n; i++) CHECK(pthread_create(&threads[i], NULL, fn, (void *)i) == 0);
    for (int i = 0; i < n; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *holds(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        if ((intptr_t)number % 3 == 0) {
            while (ftrylockfile(file) != 0) usleep(1000);
        } else {
            flockfile(file);
        }
        CHECK(inside++ == 0);
        flockfile(file); /* once more */
        fprintf(file, "%d ", (int)(intptr_t)number);
        usleep(300);
        pthread_mutex_lock(&mutex); /* an other lock that others hold over waits */
        usleep(10);
        pthread_mutex_unlock(&mutex);
        fprintf(file, "%d\n", (int)(intptr_t)number);
        funlockfile(file);
        sched_yield();
        CHECK(--inside == 0);
        funlockfile(file);
        fprintf(file, "%d %d\n", (int)(intptr_t)number, (int)(intptr_t)number);
    }
    return NULL;
}

/* Lines of two equal numbers. */
static int lines_read(FILE *f) {
    int a, b, n = 0;
    char line[100];
    while (fgets(line, sizeof line, f)) {
        CHECK(sscanf(line, "%d %d", &a, &b) == 2 && a == b);
        n++;
    }
    return n;
}

static void held_over_sleeps(void) {
    file = tmpfile();
    CHECK(file);
    run(holds, THREADS);
    rewind(file);
    CHECK(lines_read(file) == 2 * THREADS * ROUNDS);
    CHECK(fclose(file) == 0);
}

/* ---- over a read ----------------------------------------------------------------------------- */

static int got; /* atomic */
static void *reads(void *arg) {
    char line[100];
    CHECK(fgets(line, sizeof line, file) && strcmp(line, "a line\n") == 0);
    __atomic_add_fetch(&got, 1, __ATOMIC_SEQ_CST);
    return arg;
}

static void *feeds(void *fd) {
    for (int i = 0; i < THREADS - 1; i++) {
        usleep(500);
        CHECK(write((int)(intptr_t)fd, "a li", 4) == 4);
        usleep(100);
        CHECK(write((int)(intptr_t)fd, "ne\n", 3) == 3);
        wait_until(__atomic_load_n(&got, __ATOMIC_SEQ_CST) == i + 1);
    }
    return NULL;
}

static void held_over_reads(void) {
    int fds[2];
    pthread_t feeder;
    CHECK(pipe(fds) == 0 && (file = fdopen(fds[0], "r")) != NULL);
    CHECK(pthread_create(&feeder, NULL, feeds, (void *)(intptr_t)fds[1]) == 0);
    run(reads, THREADS - 1);
    CHECK(pthread_join(feeder, NULL) == 0);
    CHECK(fclose(file) == 0 && close(fds[1]) == 0);
}

/* ---- over a write ---------------------------------------------------------------------------- */

static void *prints(void *number) {
    for (int i = 0; i < 200; i++)
        CHECK(fprintf(file, "%d %d\n", (int)(intptr_t)number, (int)(intptr_t)number) > 0);
    return NULL;
}

static void *drains(void *fd) {
    FILE *in = fdopen((int)(intptr_t)fd, "r");
    CHECK(in);
    usleep(20000); /* until it is full */
    intptr_t n = lines_read(in);
    CHECK(fclose(in) == 0);
    return (void *)n;
}

static void held_over_writes(void) {
    int fds[2];
    pthread_t reader;
    void *lines;
    CHECK(pipe(fds) == 0 && (file = fdopen(fds[1], "w")) != NULL);
    CHECK(fcntl(fds[1], F_SETPIPE_SZ, 4096) > 0 && setvbuf(file, NULL, _IOLBF, 4096) == 0);
    CHECK(pthread_create(&reader, NULL, drains, (void *)(intptr_t)fds[0]) == 0);
    run(prints, 30);
    CHECK(fclose(file) == 0 && pthread_join(reader, &lines) == 0);
    CHECK((intptr_t)lines == 30 * 200);
}

int main(int argc, char **argv) {
    if (argc == 1) held_over_reads();
    if (argc == 1) held_over_writes();
    held_over_sleeps();
    if (as_goroutines() && getenv("GORT_DEBUG") == NULL) { /* fewer kernel threads than wait */
        CHECK(setenv("GORT_DEBUG", "maxthreads=30", 1) == 0);
        execl(argv[0], argv[0], "sleeps", NULL);
        CHECK(!"exec");
    }
    return 0;
}
