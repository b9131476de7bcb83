/* Without a runtime: what needs a goroutine says so, everything else works between plain
 * threads. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void nothing(void *arg) {}
static int nothing_group(gort_ctx *c, void *arg) { return 0; }
static long seven(void *arg) { return 7; }
static void count(void *arg) { ++*(int *)arg; }

static void what_needs_a_goroutine(void) {
    gort_wg wg = {0};
    gort_timer *owner = NULL;
    int x = 0;
    gort_chan *ints = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_go(nothing, NULL), -ENOTCONN);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "x"}, nothing, NULL), -ENOTCONN);
    CHECK_EQ(gort_go_copy(nothing, &x, sizeof x), -ENOTCONN);
    CHECK_EQ(gort_wg_go(&wg, nothing, NULL), -ENOTCONN);
    gort_wg_wait(&wg); /* it was not counted */
    CHECK(gort_timer_new(GORT_MS, nothing, NULL) == NULL);
    CHECK(gort_ticker_new(GORT_MS, nothing, NULL) == NULL);
    CHECK(gort_after(GORT_MS) == NULL);
    CHECK(gort_tick(GORT_MS, &owner) == NULL);
    CHECK_EQ(gort_signal_notify(ints, SIGUSR1), -ENOTCONN);
    CHECK_EQ(gort_count(), 0);
    CHECK_EQ(gort_id(), 0);
    CHECK_EQ(gort_maxprocs(0), -ENOTCONN);
    CHECK_EQ(gort_maxprocs(4), -ENOTCONN);
    CHECK_EQ(gort_pin(), -ENOTCONN);
    gort_group *g = gort_group_new(NULL, 0);
    if (g) {
        CHECK_EQ(gort_group_go(g, nothing_group, NULL), -ENOTCONN);
        CHECK_EQ(gort_group_go(g, NULL, NULL), -EINVAL); /* as gort_go */
        CHECK_EQ(gort_group_try_go(g, NULL, NULL), -EINVAL);
        CHECK_EQ(gort_group_wait(g), 0);
    }
    gort_chan_release(ints);
}

static void what_does_nothing(void) {
    gort_stats s;
    gort_yield();
    gort_lock_thread();
    gort_unlock_thread();
    gort_enter_syscall();
    gort_exit_syscall();
    CHECK_EQ(gort_blocking(seven, NULL), 7);
    gort_stats_read(&s);
    CHECK_EQ(s.goroutines, 0);
    int64_t before = gort_now();
    gort_sleep(2 * GORT_MS);
    CHECK_GE(gort_now() - before, 2 * GORT_MS);
}

static gort_chan *chan;
static gort_mutex mutex;
static int guarded;

static void *worker(void *arg) {
    int v;
    while (gort_chan_recv(chan, &v) == 0) {
        gort_mutex_lock(&mutex);
        guarded += v;
        gort_mutex_unlock(&mutex);
    }
    return NULL;
}

static void between_plain_threads(void) {
    pthread_t t[3];
    int one = 1, v = 5, times = 0;
    gort_once once = {0};
    guarded = 0;
    chan = gort_chan_new(sizeof(int), 2);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, worker, NULL), 0);
    for (int i = 0; i < 3000; i++) CHECK_EQ(gort_chan_send(chan, &one), 0);
    CHECK_EQ(gort_chan_close(chan), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(guarded, 3000);
    CHECK_EQ(gort_chan_recv(chan, &v), -EPIPE);
    CHECK_EQ(v, 0);
    gort_chan_release(chan);
    gort_once_do(&once, count, &times);
    gort_once_do(&once, count, &times);
    CHECK_EQ(times, 1);
}

static void deadlines(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 0);
    int v = 8;
    CHECK_EQ(gort_chan_recv_until(c, &v, gort_now() + 2 * GORT_MS), -ETIMEDOUT);
    CHECK_EQ(v, 8);
    gort_ctx *ctx = gort_ctx_with_deadline(NULL, gort_now() + 2 * GORT_MS);
    CHECK_EQ(gort_chan_recv(gort_ctx_done(ctx), NULL), -EPIPE); /* it passes without a runtime */
    CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
    gort_ctx_release(ctx);
    gort_chan_release(c);
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(gort_read_until(fd[0], &v, sizeof v, gort_now() + 2 * GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(fd[1], &v, sizeof v), sizeof v);
    CHECK_EQ(gort_read(fd[0], &v, sizeof v), sizeof v);
    gort_close(fd[0]);
    gort_close(fd[1]);
}

static void all(void) {
    what_needs_a_goroutine();
    what_does_nothing();
    between_plain_threads();
    deadlines();
}

static int body(int argc, char **argv) {
    CHECK_EQ(gort_go(nothing, NULL), 0);
    return 0;
}

int main(int argc, char **argv) {
    all(); /* before the first runtime, */
    CHECK_EQ(gort_main(body, argc, argv), 0);
    all(); /* and after it */
    return 0;
}
