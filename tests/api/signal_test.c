/* Signals as channels. */
#include "../lib/test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int by_handler;
static void handler(int signo) { add(&by_handler, 1); }

static int recv_int(gort_chan *c) {
    int v = -1;
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    return v;
}

static void bad_arguments(void) {
    gort_chan *ints = gort_chan_new(sizeof(int), 1), *longs = gort_chan_new(sizeof(long), 1);
    CHECK_EQ(gort_signal_notify(longs, SIGUSR1), -EINVAL);
    CHECK_EQ(gort_signal_notify(NULL, SIGUSR1), -EINVAL);
    int bad[] = {SIGKILL, SIGSTOP, SIGURG, SIGSEGV, SIGBUS, SIGFPE, SIGILL, 0, -1, 65, 1000};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(gort_signal_notify(ints, bad[i]), -EINVAL);
    CHECK_EQ(gort_signal_stop(ints), 0); /* it watches nothing */
    gort_chan_release(ints);
    gort_chan_release(longs);
}

static void one_by_one(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0); /* twice is once */
    CHECK_EQ(gort_signal_notify(c, SIGUSR2), 0);
    for (int i = 0; i < 20; i++) {
        kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2);
        CHECK_EQ(recv_int(c), i % 2 ? SIGUSR1 : SIGUSR2);
        CHECK_EQ(gort_chan_len(c), 0);
    }
    CHECK_EQ(gort_signal_stop(c), 0);
    gort_chan_release(c);
}

/* Several channels; one that is full misses it and holds up nobody. What came before stop is there
 * after it, and nothing comes later. */
static void several(void) {
    gort_chan *a = gort_chan_new(sizeof(int), 8), *b = gort_chan_new(sizeof(int), 1);
    gort_chan *unbuffered = gort_chan_new(sizeof(int), 0);
    signal(SIGUSR1, handler); /* what was there before comes back at the end */
    CHECK_EQ(gort_signal_notify(a, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(b, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(unbuffered, SIGUSR1), 0);
    for (int i = 0; i < 3; i++) {
        raise(SIGUSR1);
        CHECK_EQ(recv_int(a), SIGUSR1);
    }
    raise(SIGUSR1);
    CHECK_EQ(gort_signal_stop(a), 0);
    CHECK_EQ(gort_chan_len(a), 1);
    raise(SIGUSR1);
    CHECK_EQ(gort_signal_stop(b), 0);
    CHECK_EQ(gort_chan_len(b), 1);
    CHECK_EQ(gort_chan_len(a), 1);
    CHECK_EQ(gort_signal_stop(unbuffered), 0);
    CHECK_EQ(by_handler, 0);
    raise(SIGUSR1);
    CHECK_EQ(by_handler, 1);
    signal(SIGUSR1, SIG_DFL);
    gort_chan_release(a);
    gort_chan_release(b);
    gort_chan_release(unbuffered);
}

/* A watched channel is retained: the program may forget it. */
static void retained(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(c, SIGUSR2), 0);
    gort_chan_release(c);
    raise(SIGUSR2);
    CHECK_EQ(recv_int(c), SIGUSR2);
    CHECK_EQ(gort_signal_stop(c), 0); /* and this was the last of it */
}

/* Bursts from another goroutine while the first receives: every int is the signal's number. */
static int bursts_over;
static void bursts(void *arg) {
    for (int i = 0; i < 200; i++) {
        raise(i % 2 ? SIGUSR1 : SIGUSR2);
        if (i % 10 == 0) gort_yield();
    }
    set(&bursts_over, 1);
}
static void burst(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 512);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(c, SIGUSR2), 0);
    CHECK_EQ(gort_go(bursts, NULL), 0);
    wait_until(get(&bursts_over));
    CHECK_EQ(gort_signal_stop(c), 0);
    int n[2] = {0}, v;
    while (gort_chan_try_recv(c, &v) == 0) {
        CHECK(v == SIGUSR1 || v == SIGUSR2);
        n[v == SIGUSR1]++;
    }
    CHECK_EQ(n[0], 100); /* raise() returns after delivery, so none was merged */
    CHECK_EQ(n[1], 100);
    gort_chan_release(c);
}

/* SIGQUIT watched is only a number. */
static void quit_is_a_number(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(c, SIGQUIT), 0);
    kill(getpid(), SIGQUIT);
    CHECK_EQ(recv_int(c), SIGQUIT);
    CHECK_EQ(gort_signal_stop(c), 0);
    gort_chan_release(c);
}

static int body(int argc, char **argv) {
    bad_arguments();
    one_by_one();
    several();
    retained();
    burst();
    quit_is_a_number();
    return 0;
}

int main(int argc, char **argv) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), -ENOTCONN);
    CHECK_EQ(gort_signal_stop(c), 0); /* it watched nothing */
    gort_chan_release(c);
    for (int i = 0; i < 2; i++) {
        by_handler = bursts_over = 0;
        CHECK_EQ(gort_main(body, argc, argv), 0);
    }
    return 0;
}
