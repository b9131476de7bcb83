/* A runnable goroutine runs, whoever else does: what has to come to its turn here would wait for
 * ever, and the test with it, where the scheduler forgets it. (Found by tests/fair, which has the
 * bounds; this is the real runtime with real threads.) */
#include "../lib/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static int stop, running;

static void begins(void (*fn)(void *), void *arg) {
    add(&running, 1);
    CHECK_EQ(gort_go(fn, arg), 0);
}
static void ends(void) { add(&running, -1); }

/* All others stop; main is the one that waits. */
static void all_end(void) {
    set(&stop, 1);
    wait_until(get(&running) == 0);
    set(&stop, 0);
}

/* ---- one that is locked to its thread yields in a loop ---- */

static void yields_locked(void *arg) {
    gort_lock_thread();
    while (!get(&stop)) gort_yield();
    gort_unlock_thread();
    ends();
}
static void yields(void *arg) {
    for (int i = 0; i < 200; i++) gort_yield();
    add((int *)arg, 1);
    ends();
}
static void counts(void *arg) { add((int *)arg, 1); }
static void writes(void *arg) {
    CHECK_EQ(gort_write(*(int *)arg, "x", 1), 1);
    ends();
}

static void beside_a_locked_yielder(void) {
    int done = 0, fired = 0, pipes[2];
    char byte;
    CHECK_EQ(pipe(pipes), 0);
    begins(yields_locked, NULL);
    for (int i = 0; i < 4; i++) begins(yields, &done); /* the global queue */
    gort_timer *t = gort_timer_new(GORT_MS, counts, &fired);
    gort_sleep(GORT_MS); /* timers */
    begins(writes, &pipes[1]);
    CHECK_EQ(gort_read(pipes[0], &byte, 1), 1); /* the poller */
    while (get(&done) < 4 || get(&fired) < 1) gort_sleep(GORT_MS);
    gort_timer_free(t);
    all_end();
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- one that is locked to its thread waits for a descriptor, a file, a timer, and all others do
 * too ---- */

typedef struct Slow {
    int fd, rounds;
} Slow;
static long writes_slowly(void *arg) {
    Slow *s = arg;
    usleep(500);
    return write(s->fd, "x", 1);
}
static void *writer(void *arg) {
    Slow *s = arg;
    for (int i = 0; i < s->rounds; i++) CHECK_EQ(writes_slowly(s), 1);
    return NULL;
}

static void waits_locked(void *arg) {
    enum { ROUNDS = 20 };
    int pipes[2];
    char byte, name[] = "/tmp/gort-fair.XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0);
    unlink(name);
    CHECK_EQ(pipe(pipes), 0);
    Slow s = {pipes[1], ROUNDS};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, writer, &s), 0);
    gort_lock_thread();
    for (int i = 0; i < ROUNDS; i++) CHECK_EQ(gort_read(pipes[0], &byte, 1), 1);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(gort_pwrite(file, "x", 1, i), 1);
        CHECK_EQ(gort_fsync(file), 0);
    }
    for (int i = 0; i < ROUNDS; i++) gort_sleep(200 * GORT_US);
    for (int i = 0; i < ROUNDS; i++) CHECK_EQ(gort_blocking(writes_slowly, &s), 1);
    gort_unlock_thread();
    pthread_join(thread, NULL);
    close(pipes[0]);
    close(pipes[1]);
    close(file);
    gort_chan_close(arg);
}

static void all_wait(void) {
    gort_chan *over = gort_chan_new(0, 0);
    CHECK_EQ(gort_go(waits_locked, over), 0);
    CHECK_EQ(gort_chan_recv(over, NULL), -EPIPE);
    gort_chan_release(over);
}

/* ---- a pair plays ball, one of them locked, and others wait in the queue of their P ---- */

typedef struct Pair {
    gort_chan *there, *back;
    bool lock;
} Pair;

static void serves(void *arg) {
    Pair *p = arg;
    if (p->lock) gort_lock_thread();
    while (!get(&stop)) {
        CHECK_EQ(gort_chan_send(p->there, NULL), 0);
        CHECK_EQ(gort_chan_recv(p->back, NULL), 0);
    }
    gort_chan_close(p->there);
    ends();
}
static void returns(void *arg) {
    Pair *p = arg;
    while (gort_chan_recv(p->there, NULL) == 0) CHECK_EQ(gort_chan_send(p->back, NULL), 0);
    ends();
}
static void is_there(void *arg) {
    add((int *)arg, 1);
    ends();
}
static void starts_some(void *arg) { /* into the ring of the pair's P, and away */
    for (int i = 0; i < 8; i++) begins(is_there, arg);
    ends();
}

static void beside_a_pair(bool lock) {
    int there = 0;
    Pair p = {gort_chan_new(0, 0), gort_chan_new(0, 0), lock};
    begins(serves, &p);
    begins(returns, &p);
    for (int i = 0; i < 5; i++) {
        begins(starts_some, &there);
        while (get(&there) < 8 * (i + 1)) gort_sleep(GORT_MS);
    }
    all_end();
    gort_chan_release(p.there);
    gort_chan_release(p.back);
}

/* ---- short announced calls in a loop: another one at each look of the monitor ---- */

static void calls(void *arg) {
    while (!get(&stop)) {
        gort_enter_syscall();
        usleep(20);
        gort_exit_syscall();
    }
    ends();
}

static void beside_calls(void) {
    int done = 0;
    for (int i = 0; i < test_procs(); i++) begins(calls, NULL);
    for (int i = 0; i < 4; i++) begins(yields, &done);
    while (get(&done) < 4) gort_sleep(GORT_MS);
    all_end();
}

static void beside_any_pair(void) { beside_a_pair(false); }
static void beside_a_locked_pair(void) { beside_a_pair(true); }

/* An argument picks one. */
static int body(int argc, char **argv) {
    static void (*const all[])(void) = {beside_a_locked_yielder, all_wait, beside_any_pair,
                                        beside_a_locked_pair, beside_calls};
    for (int i = 0; i < 5; i++)
        if (argc < 2 || atoi(argv[1]) == i) all[i]();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
