/*
 * A read of a pipe that has always found something so far is made as it is under gort-run, and at
 * first it sleeps in the kernel. A handler without SA_RESTART ends it there, too. One signal comes,
 * when the call is seen asleep. (A few may come just as the call goes on as a goroutine's.)
 */
#include "threads_test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>

enum { ROUNDS = 200, FULL = 300, LOST_MOST = 4 };

static int pipes[2], orders[2];
static pthread_t reader;
static int reads, over; /* atomic: the round whose last read begins, has ended */

static void on_signal(int signo) {}

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Another process writes: a pipe with both ends here is counted. */
static void writes(void) {
    char c, full[FULL] = {0};
    close(orders[1]);
    while (read(orders[0], &c, 1) == 1) CHECK(write(pipes[1], full, FULL) == FULL);
    _exit(0);
}

static void *reads_all(void *unused) {
    char c;
    for (int round = 1; round <= ROUNDS; round++) {
        CHECK(write(orders[1], "x", 1) == 1);
        for (int i = 0; i < FULL; i++) CHECK(read(pipes[0], &c, 1) == 1);
        __atomic_store_n(&reads, round, __ATOMIC_SEQ_CST);
        CHECK(read(pipes[0], &c, 1) == -1 && errno == EINTR);
        __atomic_store_n(&over, round, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* A kernel thread sleeps in a read of the pipe. */
static bool seen_asleep(void) {
    DIR *tasks = opendir("/proc/self/task");
    bool seen = false;
    CHECK(tasks != NULL);
    for (struct dirent *d; !seen && (d = readdir(tasks));) {
        char path[300];
        long number = -1;
        unsigned long fd = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/syscall", d->d_name);
        FILE *f = fopen(path, "r");
        if (f == NULL) continue;
        seen = fscanf(f, "%ld %lx", &number, &fd) == 2 && number == SYS_read &&
               fd == (unsigned long)pipes[0];
        fclose(f);
    }
    closedir(tasks);
    return seen;
}

static bool ends_by(int round, int64_t deadline) {
    while (__atomic_load_n(&over, __ATOMIC_SEQ_CST) < round && now_ms() < deadline) usleep(100);
    return __atomic_load_n(&over, __ATOMIC_SEQ_CST) >= round;
}

/* Not seen: it waits as a goroutine, or not yet. */
static void end(int round) {
    static int lost;
    bool seen = false;
    wait_until(__atomic_load_n(&reads, __ATOMIC_SEQ_CST) == round);
    for (int64_t until = now_ms() + 20; !seen && now_ms() < until;) seen = seen_asleep();
    CHECK(pthread_kill(reader, SIGUSR1) == 0);
    if (seen && !ends_by(round, now_ms() + 5000)) CHECK(++lost <= LOST_MOST);
    while (!ends_by(round, now_ms() + 2)) CHECK(pthread_kill(reader, SIGUSR1) == 0);
}

int main(void) {
    struct sigaction act = {.sa_handler = on_signal};
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    CHECK(pipe(pipes) == 0 && pipe(orders) == 0);
    if (fork() == 0) writes();
    CHECK(pthread_create(&reader, NULL, reads_all, NULL) == 0);
    for (int round = 1; round <= ROUNDS; round++) end(round);
    CHECK(pthread_join(reader, NULL) == 0);
    return 0;
}
