/* Channels come and go while signals arrive: each is delivered to the channel or to what was
 * installed before, none is lost and none comes twice. Signals of the queued kind, so that the
 * kernel merges none. And in a child there is nobody to take from the channel: a signal takes the
 * program's way there. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENT 20000
static int by_handler, with_value, sent;

static void handler(int signo, siginfo_t *info, void *context) {
    add(&by_handler, 1);
    if (info->si_code == SI_QUEUE && info->si_value.sival_int == 4711) add(&with_value, 1);
}

static void *sender(void *arg) {
    union sigval v = {.sival_int = 4711};
    while (get(&sent) < SENT) {
        /* else the kernel's queue is full */
        if (sigqueue(getpid(), SIGRTMIN + 3, v) == 0) add(&sent, 1);
        else sched_yield();
    }
    return NULL;
}

static int drain(gort_chan *c) {
    int n = 0, v;
    while (gort_chan_try_recv(c, &v) == 0) n++;
    return n;
}

static void none_is_lost(void) {
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK_EQ(sigaction(SIGRTMIN + 3, &sa, NULL), 0);
    gort_chan *c = gort_chan_new(sizeof(int), SENT);
    int by_channel = 0, rounds = 0;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sender, NULL), 0);
    for (; get(&sent) < SENT; rounds++) {
        int before = get(&sent);
        CHECK_EQ(gort_signal_notify(c, SIGRTMIN + 3), 0);
        if (rounds % 2) wait_until(get(&sent) != before);
        CHECK_EQ(gort_signal_stop(c), 0);
        by_channel += drain(c);
        CHECK_EQ(drain(c), 0); /* nothing comes later */
    }
    pthread_join(thread, NULL);
    wait_until(get(&by_handler) + by_channel >= SENT);
    printf("%d rounds: %d by the channel, %d by the handler\n", rounds, by_channel,
           get(&by_handler));
    CHECK_EQ(get(&by_handler) + by_channel, SENT);
    CHECK_EQ(get(&with_value), get(&by_handler)); /* with all that was sent along */
    CHECK(by_channel > 0);
    gort_chan_release(c);
}

static long reap(void *arg) {
    int status = -1;
    while (waitpid(*(pid_t *)arg, &status, 0) < 0) {}
    return status;
}

static void in_children(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 8);
    CHECK_EQ(gort_signal_notify(c, SIGTERM), 0);
    for (int kind = 0; kind < 2; kind++) {
        pid_t pid = kind ? vfork() : fork();
        if (pid == 0) {
            syscall(SYS_kill, syscall(SYS_getpid), SIGTERM); /* its default ends the child */
            _exit(3);
        }
        int status = (int)gort_blocking(reap, &pid);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), SIGTERM);
        CHECK_EQ(gort_chan_len(c), 0); /* and is not the parent's */
    }
    int v;
    kill(getpid(), SIGTERM);
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    CHECK_EQ(gort_signal_stop(c), 0);
    gort_chan_release(c);
}

/* A handler that the program installs during a watch stays when the watch ends, also in a child.
 * Another watch takes the signal from it, and gives it back. It may pass signals on to what it has
 * found. */
static struct sigaction found;
static int newer_ran;

static void newer(int signo, siginfo_t *info, void *context) {
    add(&newer_ran, 1);
    if (found.sa_flags & SA_SIGINFO) found.sa_sigaction(signo, info, context);
}

static void raise_in_child(int expected) {
    pid_t pid = fork();
    if (pid == 0) {
        int before = get(&newer_ran);
        raise(SIGUSR1);
        _exit(get(&newer_ran) - before);
    }
    int status = (int)gort_blocking(reap, &pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), expected);
}

enum { EMPTY, FULL, COPIED, EVERY_BIT }; /* the newer handler's mask; COPIED: from ours */

static void newer_stays(int passes_on, int mask) {
    struct sigaction sa = {.sa_sigaction = newer, .sa_flags = SA_SIGINFO}, now;
    gort_chan *c = gort_chan_new(sizeof(int), 8), *d = gort_chan_new(sizeof(int), 8);
    int v;
    set(&newer_ran, 0);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    if (mask == FULL) sigfillset(&sa.sa_mask);
    if (mask == COPIED) CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
    if (mask == EVERY_BIT) memset(&sa.sa_mask, 0xff, sizeof sa.sa_mask);
    sa.sa_sigaction = newer;
    CHECK_EQ(sigaction(SIGUSR1, &sa, &found), 0);
    if (!passes_on) found = (struct sigaction){0};
    raise(SIGUSR1);
    CHECK_EQ(get(&newer_ran), 1);
    if (passes_on) CHECK_EQ(gort_chan_recv(c, &v), 0);
    CHECK_EQ(gort_chan_len(c), 0);
    raise_in_child(1);
    CHECK_EQ(gort_signal_stop(c), 0);
    raise(SIGUSR1);
    CHECK_EQ(get(&newer_ran), 2);
    raise_in_child(1);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0); /* the same channel */
    raise(SIGUSR1);
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(gort_signal_notify(d, SIGUSR1), 0); /* another */
    raise(SIGUSR1);
    CHECK_EQ(gort_chan_recv(d, &v), 0);
    CHECK_EQ(get(&newer_ran), 2);
    CHECK_EQ(gort_signal_stop(c), 0);
    CHECK_EQ(gort_signal_stop(d), 0);
    raise(SIGUSR1);
    CHECK_EQ(get(&newer_ran), 3);
    raise_in_child(1);
    CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
    CHECK(now.sa_sigaction == newer);
    signal(SIGUSR1, SIG_DFL);
    gort_chan_release(c);
    gort_chan_release(d);
}

/* The program puts back what it has found during a watch, after the watch: our handler. A signal
 * takes the way of before, and the next watch does not take ours for what was there. */
static int older_ran;
static void older(int signo) { add(&older_ran, 1); }

static void found_comes_back(void) {
    struct sigaction now;
    gort_chan *c = gort_chan_new(sizeof(int), 8);
    int v;
    signal(SIGUSR1, older);
    for (int i = 0; i < 3; i++) {
        set(&older_ran, 0);
        CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
        CHECK_EQ(sigaction(SIGUSR1, NULL, &found), 0);
        CHECK_EQ(gort_signal_stop(c), 0);
        CHECK_EQ(sigaction(SIGUSR1, &found, NULL), 0);
        if (i == 1) raise_in_child(0);
        if (i == 2) {
            CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
            raise(SIGUSR1);
            CHECK_EQ(gort_chan_recv(c, &v), 0);
            CHECK_EQ(gort_signal_stop(c), 0);
        }
        raise(SIGUSR1);
        CHECK_EQ(get(&older_ran), 1);
        CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
        CHECK(now.sa_handler == older);
    }
    signal(SIGUSR1, SIG_DFL);
    gort_chan_release(c);
}

static int body(int argc, char **argv) {
    /* TSan keeps back one signal of a number, and calls its handler itself: the kernel has not */
    bool kernels = TEST_SCALE == 1;
    if (kernels) none_is_lost();
    in_children();
    for (int mask = EMPTY; mask <= EVERY_BIT; mask++) {
        newer_stays(0, mask);
        newer_stays(1, mask);
    }
    if (kernels) found_comes_back();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
