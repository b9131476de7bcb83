/* Blocking calls: announced ones lose their P to whoever needs it, gort_blocking hands it off at
 * once; values and errno come back; calls that do not block may be made inside. */
#define _GNU_SOURCE
#include "../lib/test.h"
#include <pthread.h>
#include <unistd.h>

static int pipes[2];
static gort_wg wg;

static long read_byte(void *arg) {
    char c;
    ssize_t n = read(pipes[0], &c, 1);
    errno = 77;
    return n == 1 ? c : -1;
}

/* Every P is blocked in a call; main can write only if it is given one of them. */
static void announced(void *arg) {
    char c = 0;
    gort_enter_syscall();
    ssize_t n = read(pipes[0], &c, 1);
    errno = 78;
    gort_exit_syscall();
    CHECK_EQ(errno, 78);
    CHECK_EQ(n, 1);
    CHECK_EQ(c, 'x');
    gort_wg_done(&wg);
}

static void handed_off(void *arg) {
    CHECK_EQ(gort_blocking(read_byte, NULL), 'x');
    CHECK_EQ(errno, 77);
    gort_wg_done(&wg);
}

static void all_block(gort_fn *fn) {
    int n = 2 * gort_maxprocs(0) + 1;
    gort_wg_add(&wg, n);
    for (int i = 0; i < n; i++) CHECK_EQ(gort_go(fn, NULL), 0);
    gort_yield();
    for (int i = 0; i < n; i++) CHECK_EQ(write(pipes[1], "x", 1), 1);
    gort_wg_wait(&wg);
}

/* ---- inside a blocking call ------------------------------------------------------------------ */

static gort_chan *told;
static uint64_t id_inside;
static void started_inside(void *arg) { gort_wg_done(&wg); }

static long calls_inside(void *arg) {
    int v = 5;
    id_inside = gort_id();
    CHECK_GT(gort_now(), 0);
    CHECK_EQ(gort_chan_try_send(told, &v), 0);
    gort_wg_add(&wg, 1);
    CHECK_EQ(gort_go(started_inside, NULL), 0);
    return 9;
}

static void inside(void) {
    int v = 0;
    told = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_blocking(calls_inside, NULL), 9);
    CHECK_EQ(id_inside, gort_id());
    CHECK_EQ(gort_chan_recv(told, &v), 0);
    CHECK_EQ(v, 5);
    gort_wg_wait(&wg);
    gort_enter_syscall();
    calls_inside(NULL);
    gort_exit_syscall();
    gort_wg_wait(&wg);
    gort_chan_release(told);
}

/* ---- threads --------------------------------------------------------------------------------- */

static long thread_of(void *arg) { return gettid(); }

static void *plain(void *arg) {
    CHECK_EQ(gort_blocking(thread_of, NULL), gettid());
    gort_enter_syscall(); /* nothing to do there */
    gort_exit_syscall();
    return NULL;
}

static void threads(void) {
    pthread_t t;
    gort_lock_thread();
    CHECK_EQ(gort_blocking(thread_of, NULL), gettid());
    gort_unlock_thread();
    CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static int body(int argc, char **argv) {
    gort_stats before, after;
    CHECK_EQ(pipe(pipes), 0);
    gort_stats_read(&before);
    all_block(announced);
    all_block(handed_off);
    gort_stats_read(&after);
    CHECK_GE(after.syscalls_blocking - before.syscalls_blocking, (uint64_t)gort_maxprocs(0));
    CHECK_GT(after.handoffs, before.handoffs);
    inside();
    threads();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
