/*
 * A goroutine comes back from a hooked call on the thread it left; unless that thread is stuck.
 *
 * On a machine that is busy with other things a thread may be out of reach for long, and then the
 * home is given up, by right. So the first part asks for one clean round out of as many as it
 * takes, with guests on several threads: without homes, hundreds of returns to the right one by
 * chance do not happen.
 */
#include "hook.h"

#define GUESTS 48
#define CALLS 8
static int pairs[GUESTS][2], done, moved, tids[GUESTS];
static __thread int local;

static int __attribute__((noinline)) * local_at(void) {
    __asm__ volatile("");
    return &local;
}

static void echo(void *arg) {
    int *pair = arg;
    char c;
    while (read(pair[1], &c, 1) == 1) CHECK_EQ(write(pair[1], &c, 1), 1);
}

/* Long enough for others to be stolen, so that several threads have guests. */
static void spin(void) {
    for (int64_t from = gort_now(); gort_now() - from < 100 * GORT_US;) {}
}

static int most_on_one(void) {
    int most = 0;
    for (int i = 0; i < GUESTS; i++) {
        int n = 0;
        for (int k = 0; k < GUESTS; k++) n += tids[k] == tids[i];
        if (n > most) most = n;
    }
    return most;
}

static void guest(void *arg) {
    int *pair = arg;
    spin();
    tids[(int(*)[2])pair - pairs] = (int)syscall(SYS_gettid);
    for (int i = 0; i < CALLS; i++) {
        char c = (char)i;
        int *at = local_at(), tid = (int)syscall(SYS_gettid);
        if (write(pair[0], &c, 1) != 1 || read(pair[0], &c, 1) != 1 || c != (char)i) FAILF("echo");
        if (i % 4 == 3) usleep(50);
        if (local_at() != at || syscall(SYS_gettid) != tid) add(&moved, 1);
    }
    add(&done, 1);
}

static void clean_round(void) {
    for (int i = 0; i < GUESTS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        gort_go(echo, pairs[i]);
    }
    do {
        set(&moved, 0);
        set(&done, 0);
        for (int i = 0; i < GUESTS; i++) gort_go(guest, pairs[i]);
        wait_until(get(&done) == GUESTS);
    } while (get(&moved) != 0 || (test_procs() > 1 && most_on_one() > GUESTS - 8));
    for (int i = 0; i < GUESTS; i++) close(pairs[i][0]);
}

/* Stuck: the thread of the guest sleeps in a call that nobody hooked. */
static int door[2], block[2], guest_tid, stuck_tid;

static void homed(void *arg) {
    char c;
    set(&guest_tid, (int)syscall(SYS_gettid));
    CHECK_EQ(read(door[0], &c, 1), 1);
    CHECK_EQ(write(block[1], "x", 1), 1); /* lets the other one go */
    add(&done, 1);
}

static void blocker(void *arg) {
    char c;
    set(&stuck_tid, (int)syscall(SYS_gettid));
    CHECK_EQ(syscall(SYS_read, block[0], &c, 1), 1);
    add(&done, 1);
}

static void stuck(void) {
    CHECK_EQ(pipe(door), 0);
    CHECK_EQ(pipe(block), 0);
    do { /* until both were on one thread; with one P that is at once, as a rule */
        set(&done, 0);
        set(&guest_tid, 0);
        gort_go(homed, NULL);
        wait_until(get(&guest_tid) != 0);
        wait_for_waiting("IO wait", 1);
        set(&stuck_tid, 0);
        gort_go(blocker, NULL);
        wait_until(get(&stuck_tid) != 0);
        CHECK_EQ(write(door[1], "x", 1), 1);
        wait_until(get(&done) == 2);
    } while (get(&stuck_tid) != get(&guest_tid) && test_procs() == 1);
}

/* Goroutines that compute for a while between their calls: they are preempted, and their threads
 * wait in the handler with guests of their own. That must not cost the guests their home: every
 * third call went astray then. On a busy machine one may for other reasons. */
enum { WORKERS = 20, TURNS = 3, CALLS_ASTRAY = WORKERS * TURNS / 10 };

/* No call of gort's: it is preempted by signal. */
static int64_t clock_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

static void worker(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        int tid = (int)syscall(SYS_gettid);
        usleep(100);
        if (syscall(SYS_gettid) != tid) add(&moved, 1);
        for (int64_t from = clock_now(); clock_now() - from < 15 * GORT_MS;) {}
    }
    add(&done, 1);
}

static void busy(void) {
    set(&moved, 0);
    set(&done, 0);
    for (int k = 0; k < WORKERS; k++) gort_go(worker, NULL);
    wait_until(get(&done) == WORKERS);
    CHECK_LE(get(&moved), CALLS_ASTRAY);
}

static int run(int argc, char **argv) {
    clean_round();
    busy();
    for (int i = 0; i < 3; i++) stuck();
    return 0;
}
HOOK_MAIN(run)
