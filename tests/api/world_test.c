#define _GNU_SOURCE 1
/* gort_stop_world: nothing else runs, callers take turns, blocking calls and plain threads go
 * on. */
#include "../lib/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINNERS = 3, STOPPERS = 4, TURNS = 25 };
static uint64_t spins[SPINNERS], yields, beats;
static int started, stop;

/* TSan's own locks put threads to sleep anywhere, and such a thread runs on to its next call. A
 * stop waits for one that is pinned: so there it spins from pin to pin. */
static void spin(void *arg) {
    add(&started, 1);
    while (!get(&stop)) {
#ifdef __SANITIZE_THREAD__
        gort_pin();
#endif
        __atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_RELAXED); /* no call */
#ifdef __SANITIZE_THREAD__
        gort_unpin();
#endif
    }
}

static void yielding(void *arg) {
    add(&started, 1);
    while (!get(&stop)) {
        gort_pin();
        add(&yields, 1);
        gort_unpin();
        gort_yield();
    }
}

/* Without a gort call: the world stands still. */
static void pass(long microseconds) {
    struct timespec t0, t;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    do clock_gettime(CLOCK_MONOTONIC, &t);
    while ((t.tv_sec - t0.tv_sec) * 1000000L + (t.tv_nsec - t0.tv_nsec) / 1000 < microseconds);
}

static void nothing_else_runs(void) {
    for (int round = 0; round < 8; round++) {
        uint64_t before[SPINNERS], y;
        gort_stop_world();
        for (int i = 0; i < SPINNERS; i++) before[i] = get(&spins[i]);
        y = get(&yields);
        pass(2000);
        for (int i = 0; i < SPINNERS; i++) CHECK_EQ(get(&spins[i]), before[i]);
        CHECK_EQ(get(&yields), y);
        gort_start_world();
        gort_yield();
    }
    uint64_t y = get(&yields);
    wait_until(get(&yields) > y); /* and it runs again */
}

/* A thread that sleeps in a call that nobody announced loses its P to the stop, and runs on when
 * the call returns: until its next call into gort or, where it only computes, until the monitor
 * comes by. */
static int pipe_ends[2], reading, comes_back, its_thread;
static uint64_t computed;
static void reads_and_computes(void *arg) {
    char c;
    set(&its_thread, (int)syscall(SYS_gettid));
    set(&reading, 1);
    CHECK_EQ(read(pipe_ends[0], &c, 1), 1);
    while (!get(&comes_back)) add(&computed, 1);
    set(&reading, 0);
}
/* It may be waiting for a CPU as well as have one. */
static bool its_thread_runs(void) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", get(&its_thread));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) SKIP("no /proc");
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    close(fd);
    char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'R';
}
/* Whether it ran in the stopped world: not if it was stopped on its way into the call. */
static bool stopped_while_it_reads(void) {
    set(&comes_back, 0);
    CHECK_EQ(gort_go(reads_and_computes, NULL), 0);
    wait_until(get(&reading));
    gort_yield();
    gort_stop_world();
    uint64_t before = get(&computed), n;
    /* from here on it runs, until it is stopped: else the runner's time limit */
    CHECK_EQ(write(pipe_ends[1], "", 1), 1);
    do {
        n = get(&computed);
        usleep(2000); /* not pass(): it shall have a CPU */
    } while (get(&computed) != n || its_thread_runs());
    gort_start_world();
    set(&comes_back, 1);
    wait_until(!get(&reading));
    return n != before;
}
static void who_comes_back_is_stopped(void) {
#ifdef __SANITIZE_THREAD__
    return; /* it holds signals back until the next call */
#endif
    CHECK_EQ(pipe(pipe_ends), 0);
    for (int seen = 0; seen < 3;) seen += stopped_while_it_reads();
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static long together, turns_done;
static void stopper(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        gort_stop_world();
        CHECK_EQ(get(&together), 0);
        set(&together, 1);
        long n = get(&turns_done); /* a load and a store: they take turns */
        pass(20);
        set(&turns_done, n + 1);
        set(&together, 0);
        gort_start_world();
        gort_yield();
    }
    add(&started, 1);
}

static void callers_take_turns(void) {
    set(&started, 0);
    for (int i = 0; i < STOPPERS; i++) CHECK_EQ(gort_go(stopper, NULL), 0);
    wait_until(get(&started) == STOPPERS);
    CHECK_EQ(turns_done, STOPPERS * TURNS);
}

static int gate, busy, inside, returned, resumed;
static long until_the_gate(void *arg) {
    set(&inside, 1);
    while (!get(&gate))
        if (!get(&busy)) usleep(100);
    set(&returned, 1);
    return 0;
}
static void blocks(void *arg) {
    gort_blocking(until_the_gate, NULL);
    set(&resumed, 1);
}
static void announces(void *arg) {
    gort_enter_syscall();
    until_the_gate(NULL);
    gort_exit_syscall();
    set(&resumed, 1);
}
static void *beat(void *arg) {
    while (!get(&stop)) {
        add(&beats, 1);
        usleep(100);
    }
    return NULL;
}

/* computes: it does not sleep in there. An announced call then has its P until somebody takes
 * it. */
static void calls_do_not_count(gort_fn *fn, int computes) {
    set(&gate, 0), set(&inside, 0), set(&returned, 0), set(&resumed, 0);
    set(&busy, computes);
    CHECK_EQ(gort_go(fn, NULL), 0);
    wait_until(get(&inside));
    gort_stop_world(); /* does not wait for it */
    CHECK_EQ(get(&returned), 0);
    set(&gate, 1);
    while (!get(&returned)) pass(100); /* the call finishes, */
    pass(5000);
    CHECK_EQ(get(&resumed), 0); /* its goroutine does not go on */
    gort_start_world();
    wait_until(get(&resumed));
}

static void plain_threads_go_on(void) {
    gort_stop_world();
    uint64_t b = get(&beats);
    while (get(&beats) < b + 3) pass(100);
    gort_start_world();
}

static long join(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }

static int body(int argc, char **argv) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, beat, NULL), 0);
    gort_stop_world(); /* alone */
    gort_start_world();
    for (int i = 0; i < SPINNERS; i++) CHECK_EQ(gort_go(spin, &spins[i]), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(yielding, NULL), 0);
    wait_until(get(&started) == SPINNERS + 4);
    nothing_else_runs();
    set(&stop, 2);
    wait_until(gort_count() == 1);
    CHECK_EQ(gort_blocking(join, &t), 0);
    callers_take_turns();
    set(&stop, 0);
    CHECK_EQ(pthread_create(&t, NULL, beat, NULL), 0);
    plain_threads_go_on();
    for (int computes = 0; computes < 2; computes++) {
        calls_do_not_count(blocks, computes);
        calls_do_not_count(announces, computes);
    }
    who_comes_back_is_stopped();
    set(&stop, 1);
    CHECK_EQ(gort_blocking(join, &t), 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
