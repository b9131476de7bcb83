/* gort_lock_thread: the goroutine keeps its thread, the thread runs nothing else, and ends with
 * it. */
#include "../lib/test.h"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static int my_tid(void) { return (int)syscall(SYS_gettid); }

static gort_chan *chan;
static int locked_tid, trespassed, stop;

static void others(void *arg) {
    while (!get(&stop)) {
        if (my_tid() == get(&locked_tid)) set(&trespassed, 1);
        gort_yield();
    }
}

static void producer(void *arg) {
    while (gort_chan_send(chan, NULL) == 0) gort_yield();
}

/* Every way to leave a thread and to come back. */
static void move_about(int tid) {
    for (int i = 0; i < 300; i++) {
        gort_yield();
        CHECK_EQ(my_tid(), tid);
        CHECK_EQ(gort_chan_recv(chan, NULL), 0);
        CHECK_EQ(my_tid(), tid);
    }
    for (int i = 0; i < 5; i++) {
        gort_sleep(GORT_MS);
        CHECK_EQ(my_tid(), tid);
        gort_enter_syscall();
        usleep(1000);
        gort_exit_syscall();
        CHECK_EQ(my_tid(), tid);
    }
}

static long tid_of_call(void *arg) { return my_tid(); }

static void locked(void *arg) {
    gort_lock_thread();
    int tid = my_tid();
    set(&locked_tid, tid);
    gort_lock_thread(); /* nests */
    move_about(tid);
    CHECK_EQ(gort_blocking(tid_of_call, NULL), tid); /* "fn runs on it" */
    gort_unlock_thread();
    move_about(tid);
    set(&locked_tid, 0);
    gort_unlock_thread();
    gort_unlock_thread(); /* without a lock: nothing */
    gort_yield();
    add((int *)arg, 1);
}

static void ends_locked(void *arg) {
    gort_lock_thread();
    gort_yield();
    set((int *)arg, my_tid());
}

/* The process's first thread cannot be seen to end; with it, another goroutine is tried. */
static void takes_its_thread_along(void) {
    for (int i = 0; i < 3; i++) {
        int tid = 0;
        CHECK_EQ(gort_go(ends_locked, &tid), 0);
        wait_until(get(&tid) != 0);
        if (tid == getpid()) continue;
        wait_until(syscall(SYS_tgkill, getpid(), tid, 0) != 0);
    }
}

static int body(int argc, char **argv) {
    int finished = 0;
    chan = gort_chan_new(0, 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(others, NULL), 0);
    CHECK_EQ(gort_go(producer, NULL), 0);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(gort_go(locked, &finished), 0);
        wait_until(get(&finished) == round + 1);
    }
    CHECK_EQ(get(&trespassed), 0);
    takes_its_thread_along();
    gort_chan_close(chan);
    set(&stop, 1);
    wait_until(gort_count() == 1);
    gort_lock_thread(); /* main may end locked as well */
    gort_chan_release(chan);
    return 0;
}

int main(int argc, char **argv) {
    gort_unlock_thread();
    gort_lock_thread();
    gort_unlock_thread();
    return gort_main(body, argc, argv);
}
