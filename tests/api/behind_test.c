/*
 * Functions of gort_blocking that outlive their runtime, beside the next one.
 */
#include "../lib/test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CROWD = 8, ROUNDS = 300 / TEST_SCALE };

static int inside, leave, gone;
static gort_chan *chan;
static gort_sem sem;

static void reset(void) {
    set(&inside, 0);
    set(&leave, 0);
    set(&gone, 0);
}

/* ---- what it has to say comes: no deadlock is reported before -------------------------------- */

static long sends(void *arg) {
    int v = 7;
    set(&inside, 1);
    usleep(50000); /* the monitor looks, and sees everybody asleep */
    if (arg) gort_sem_release(&sem, 1);
    else
        while (gort_chan_try_send(chan, &v) == -EAGAIN) usleep(1000); /* nobody receives yet */
    set(&gone, 1);
    return 0;
}
static void blocks_and_sends(void *arg) {
    gort_blocking(sends, arg);
    FAILF("a goroutine runs after the end of its runtime");
}
static int leaves_sender(int argc, char **argv) {
    CHECK_EQ(gort_go(blocks_and_sends, argv), 0);
    wait_until(get(&inside));
    return 0;
}
static int receives(int argc, char **argv) {
    int v = 0;
    CHECK_EQ(gort_chan_recv(chan, &v), 0);
    CHECK_EQ(v, 7);
    return 0;
}
static int acquires(int argc, char **argv) {
    gort_sem_acquire(&sem, 1);
    return 0;
}
static int nothing(int argc, char **argv) { return 0; }

static void test_sender(void) {
    for (int i = 0; i < 3; i++) {
        char *by_sem = "sem";
        chan = gort_chan_new(sizeof(int), i == 1);
        reset();
        CHECK_EQ(gort_main(leaves_sender, 0, i == 2 ? &by_sem : NULL), 0);
        CHECK_EQ(gort_main(nothing, 0, NULL), 0); /* it may be older than the last one */
        CHECK_EQ(gort_main(i == 2 ? acquires : receives, 0, NULL), 0);
        wait_until(get(&gone));
        gort_chan_release(chan);
    }
}

/* ---- it ends just when the next runtime begins ----------------------------------------------- */

static long waits(void *arg) {
    add(&inside, 1);
    while (!get(&leave)) usleep(20);
    for (volatile int i = 0; i < (int)(intptr_t)arg; i++) continue;
    return 0;
}
static void blocks_and_waits(void *arg) { gort_blocking(waits, arg); }

static int leaves_crowd(int argc, char **argv) {
    for (int i = 0; i < CROWD; i++)
        CHECK_EQ(gort_go(blocks_and_waits, (void *)(intptr_t)(i * 3000)), 0);
    wait_until(get(&inside) == CROWD);
    return 0;
}
static int yields(int argc, char **argv) {
    gort_yield();
    return 0;
}
static void test_ends_at_start(void) {
    for (int i = 0; i < ROUNDS; i++) {
        reset();
        CHECK_EQ(gort_main(leaves_crowd, 0, NULL), 0);
        set(&leave, 1);
        for (int k = 0; k < 4; k++) CHECK_EQ(gort_main(yields, 0, NULL), 0);
    }
}

/* ---- an open that nobody waits for any more: its number is closed ---------------------------- */

static char fifo[80];

static void opens(void *arg) {
    gort_open(fifo, O_RDONLY, 0);
    FAILF("a goroutine runs after the end of its runtime");
}
static uint64_t blocking_calls(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.syscalls_blocking;
}
static int leaves_open(int argc, char **argv) {
    uint64_t before = blocking_calls();
    CHECK_EQ(gort_go(opens, NULL), 0);
    wait_until(blocking_calls() > before);
    return 0;
}

static void test_open(void) {
    snprintf(fifo, sizeof fifo, "/tmp/gort_behind_%d", (int)getpid());
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    signal(SIGPIPE, SIG_IGN);
    reset();
    CHECK_EQ(gort_main(leaves_open, 0, NULL), 0);
    int fd = open(fifo, O_WRONLY);
    wait_until(write(fd, "x", 1) < 0 && errno == EPIPE); /* it has no reader */
    close(fd);
    unlink(fifo);
}

int main(int argc, char **argv) {
    if (test_simulated()) SKIP("what is left behind is not simulated");
    if (argc == 1 || strcmp(argv[1], "sender") == 0) test_sender();
    if (argc == 1 || strcmp(argv[1], "start") == 0) test_ends_at_start();
    if (argc == 1 || strcmp(argv[1], "open") == 0) test_open();
    return 0;
}
