/* Calls that nobody announced: a thread asleep in the kernel loses its P, so the others go on, and
 * no call returns EINTR because of the runtime. Each step hangs where the rule is broken. */
#define _GNU_SOURCE
#include "../lib/test.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

static int pipes[2];
static gort_wg wg;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static int holding;

static void reads(void *arg) {
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1); /* not EINTR */
    gort_wg_done(&wg);
}

static void polls(void *arg) {
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    char c;
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    gort_wg_done(&wg);
}

/* More sleepers than Ps; main is to wake them. */
static void main_goes_on(gort_fn *fn) {
    int n = gort_maxprocs(0) + 1;
    gort_wg_add(&wg, n);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(gort_go(fn, NULL), 0);
        gort_yield();
        CHECK_EQ(write(pipes[1], "x", 1), 1);
    }
    gort_wg_wait(&wg);
}

/* ---- a pthread mutex held over a sleep: those who want it sleep too -------------------------- */

static void holder(void *arg) {
    char c;
    pthread_mutex_lock(&mutex);
    set(&holding, 1);
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    pthread_mutex_unlock(&mutex);
    gort_wg_done(&wg);
}

static void wants(void *arg) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    gort_wg_done(&wg);
}

static void mutexes(void) {
    int n = gort_maxprocs(0) + 1;
    gort_wg_add(&wg, n + 1);
    CHECK_EQ(gort_go(holder, NULL), 0);
    while (!get(&holding)) gort_yield();
    for (int i = 0; i < n; i++) {
        CHECK_EQ(gort_go(wants, NULL), 0);
        gort_yield();
    }
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    gort_wg_wait(&wg);
}

/* ---- no EINTR beside goroutines that are preempted all the time ------------------------------ */

TEST_UNUSED static void hog(void *arg) {
    while (!stop) continue;
    gort_wg_done(&wg);
}

TEST_UNUSED static void naps(void *arg) {
    struct pollfd none = {.fd = -1};
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(usleep(2000), 0);
        CHECK_EQ(poll(&none, 1, 3), 0);
        struct timespec ts = {0, 1000000};
        CHECK_EQ(nanosleep(&ts, NULL), 0);
    }
    gort_wg_done(&wg);
}

TEST_UNUSED static void beside_hogs(void) {
    gort_wg_add(&wg, 4);
    for (int i = 0; i < 2; i++) CHECK_EQ(gort_go(hog, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(gort_go(naps, NULL), 0);
    gort_stats s;
    uint64_t since;
    gort_stats_read(&s);
    since = s.preemptions;
    while (gort_count() > 3) { /* the two hogs and main are left */
        gort_yield();
        gort_stats_read(&s);
    }
    printf("%" PRIu64 " preemptions, %" PRIu64 " retakes\n", s.preemptions - since, s.retakes);
    stop = 1;
    gort_wg_wait(&wg);
}

/* A lock on a file that another process holds. */
static void locks_file(void *arg) {
    CHECK_EQ(flock(*(int *)arg, LOCK_EX), 0);
    gort_wg_done(&wg);
}

static void files(void) {
    char path[] = "/tmp/gort-retake-XXXXXX";
    int a = mkstemp(path), b = open(path, O_RDWR);
    CHECK(a >= 0 && b >= 0);
    unlink(path);
    CHECK_EQ(flock(a, LOCK_EX), 0);
    gort_wg_add(&wg, 1);
    CHECK_EQ(gort_go(locks_file, &b), 0);
    gort_yield();
    CHECK_EQ(flock(a, LOCK_UN), 0);
    gort_wg_wait(&wg);
    close(a);
    close(b);
}

static int body(int argc, char **argv) {
    CHECK_EQ(pipe(pipes), 0);
    main_goes_on(reads);
    main_goes_on(polls);
    mutexes();
    files();
#ifndef __SANITIZE_THREAD__ /* TSan holds signals back until the next call */
    beside_hogs();
#endif
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
