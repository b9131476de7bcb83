/* errno travels with the goroutine, over every switch; no gort call changes it. */
#include "../lib/test.h"
#include <unistd.h>

/* Unseen by TSan, which takes the goroutines of one thread for threads that share its errno. */
__attribute__((noinline, no_sanitize("thread"))) static void put_errno(int e) { errno = e; }
__attribute__((noinline, no_sanitize("thread"))) static int see_errno(void) { return errno; }

static gort_chan *chan;
static int finished;

static void keeps_its_errno(void *arg) {
    int mine = (int)(intptr_t)arg;
    put_errno(mine);
    for (int i = 0; i < 50; i++) {
        gort_yield();
        CHECK_EQ(see_errno(), mine);
        gort_chan_send(chan, &mine);
        CHECK_EQ(see_errno(), mine);
        gort_chan_recv(chan, NULL);
        CHECK_EQ(see_errno(), mine);
    }
    gort_sleep(GORT_MS);
    CHECK_EQ(see_errno(), mine);
    add(&finished, 1);
}

/* Preempted in a loop without a call; others set theirs meanwhile, on the same P. */
static void keeps_it_when_preempted(void *arg) {
    int mine = (int)(intptr_t)arg;
    put_errno(mine);
    int64_t until = gort_now() + 40 * GORT_MS;
    while (gort_now() < until) {
        for (volatile int i = 0; i < 1000000; i++) {}
    }
    CHECK_EQ(see_errno(), mine);
    add(&finished, 1);
}

static int noop(gort_ctx *c, void *arg) { return 0; }

static void is_left_alone_by_failing_calls(void) {
    char buf[4];
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    put_errno(1234);
    CHECK_EQ(gort_go(NULL, NULL), -EINVAL);
    CHECK_EQ(gort_go_copy(keeps_its_errno, buf, 5000), -E2BIG);
    CHECK_EQ(gort_chan_try_recv(NULL, NULL), -EAGAIN);
    CHECK(gort_chan_new(SIZE_MAX, 2) == NULL);
    CHECK_EQ(gort_read(-1, buf, 4), -EBADF);
    CHECK_EQ(gort_close(-1), -EBADF);
    CHECK_EQ(gort_open("/nonexistent/file", 0, 0), -ENOENT);
    CHECK_EQ(gort_read_until(fd[0], buf, 4, gort_now()), -ETIMEDOUT);
    CHECK_EQ(gort_read_until(fd[0], buf, 4, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_listen("nonsense", 1), -EINVAL);
    CHECK_EQ(gort_signal_notify(chan, 9), -EINVAL);
    CHECK_EQ(gort_trace_stop(), -EINVAL);
    gort_group *g = gort_group_new(NULL, 0);
    CHECK_EQ(gort_group_go(g, noop, NULL), 0);
    CHECK_EQ(gort_group_wait(g), 0);
    gort_stats s;
    gort_stats_read(&s);
    gort_pin();
    gort_unpin();
    gort_maxprocs(gort_maxprocs(0) + 1);
    gort_stop_world();
    gort_start_world();
    CHECK_EQ(see_errno(), 1234);
    CHECK_EQ(gort_close(fd[0]), 0);
    CHECK_EQ(gort_close(fd[1]), 0);
    CHECK_EQ(see_errno(), 1234);
}

static long sets(void *arg) {
    put_errno((int)(intptr_t)arg);
    usleep(100);
    return -1;
}

static void survives_a_blocking_call(void) {
    for (intptr_t i = 1; i < 20; i++) {
        CHECK_EQ(gort_blocking(sets, (void *)i), -1);
        CHECK_EQ(see_errno(), i);
        gort_enter_syscall();
        int r = close(-1);
        gort_exit_syscall();
        CHECK_EQ(r, -1);
        CHECK_EQ(see_errno(), EBADF);
    }
}

static int body(int argc, char **argv) {
    put_errno(99);
    chan = gort_chan_new(sizeof(int), 3);
    for (intptr_t i = 1; i <= 40; i++) CHECK_EQ(gort_go(keeps_its_errno, (void *)i), 0);
    wait_until(get(&finished) == 40);
    CHECK_EQ(see_errno(), 99);
    for (intptr_t i = 1; i <= 6; i++)
        CHECK_EQ(gort_go(keeps_it_when_preempted, (void *)(100 + i)), 0);
    wait_until(get(&finished) == 46);
    is_left_alone_by_failing_calls();
    survives_a_blocking_call();
    gort_chan_release(chan);
    return 0;
}

int main(int argc, char **argv) {
    put_errno(5); /* outside of a runtime it is the thread's own */
    gort_go(NULL, NULL);
    CHECK_EQ(see_errno(), 5);
    CHECK_EQ(gort_main(body, argc, argv), 0);
    CHECK_EQ(see_errno(), 5);
    return 0;
}
