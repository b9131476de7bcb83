/*
 * The signal that preempts stays the runtime's, whatever the program does to its number: all are
 * reset, it is ignored, it gets a handler, by any name. A goroutine that computes is preempted, the
 * program's handler gets the program's signals, and the program sees what it has set.
 */
#include "hook.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset */

sighandler_t bsd_signal(int signo, sighandler_t handler);

static int handled, with_value, ran;
static void handler(int signo) { add(&handled, 1); }
static void other_handler(int signo) {}
static void info_handler(int signo, siginfo_t *info, void *context) {
    if (info->si_code == SI_QUEUE) set(&with_value, info->si_value.sival_int);
}

static void other(void *arg) { set(&ran, 1); }
static void check_preempted(void) {
    set(&ran, 0);
    CHECK_EQ(gort_go(other, NULL), 0);
    while (!get(&ran)) continue;
}

/* As the program did, and the signals that come from the program. */
static void check_action(sighandler_t want, int flags) {
    struct sigaction now;
    int before = get(&handled);
    CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
    CHECK(now.sa_handler == want);
    CHECK_EQ(now.sa_flags & (SA_RESTART | SA_SIGINFO | SA_ONSTACK), flags);
    do { /* the kernel drops one while another is pending */
        CHECK_EQ(kill(getpid(), SIGURG), 0);
        gort_yield();
    } while (want == handler && get(&handled) == before);
    check_preempted();
}

static void by_signal(void) {
    CHECK(signal(SIGURG, SIG_IGN) == SIG_DFL);
    check_action(SIG_IGN, SA_RESTART);
    CHECK(signal(SIGURG, handler) == SIG_IGN);
    check_action(handler, SA_RESTART);
    CHECK(ssignal(SIGURG, other_handler) == handler);
    CHECK(bsd_signal(SIGURG, handler) == other_handler);
    CHECK(__sysv_signal(SIGURG, other_handler) == handler);
    CHECK(sysv_signal(SIGURG, handler) == other_handler);
    check_action(handler, 0);
    errno = 0;
    CHECK(signal(SIGURG, SIG_ERR) == SIG_ERR);
    CHECK_EQ(errno, EINVAL);
    CHECK(signal(SIGURG, SIG_DFL) == handler);
    check_action(SIG_DFL, SA_RESTART);
}

static void by_sigset(void) {
    CHECK(sigset(SIGURG, handler) == SIG_DFL);
    check_action(handler, 0);
    gort_pin(); /* a mask is the thread's */
    CHECK(sigset(SIGURG, SIG_HOLD) == handler);
    CHECK(sigset(SIGURG, SIG_IGN) == SIG_HOLD);
    gort_unpin();
    check_action(SIG_IGN, 0);
}

static void by_sigaction(void) {
    struct sigaction sa = {.sa_handler = handler}, old;
    CHECK_EQ(sigaction(SIGURG, &sa, &old), 0);
    CHECK(old.sa_handler == SIG_IGN);
    check_action(handler, 0);
    sa.sa_flags = SA_ONSTACK | SA_RESTART;
    CHECK_EQ(sigaction(SIGURG, &sa, &old), 0);
    check_action(handler, SA_ONSTACK | SA_RESTART);
    CHECK_EQ(sigaction(SIGURG, &old, NULL), 0);
    check_action(handler, 0);
    sa.sa_flags = SA_SIGINFO;
    sa.sa_sigaction = info_handler;
    CHECK_EQ(sigaction(SIGURG, &sa, NULL), 0);
    do {
        CHECK_EQ(sigqueue(getpid(), SIGURG, (union sigval){.sival_int = 77}), 0);
        gort_yield();
    } while (get(&with_value) != 77);
    check_action(sa.sa_handler, SA_SIGINFO);
}

static void everything_reset(void) {
    for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
    check_action(SIG_DFL, SA_RESTART);
}

/* A child is no runtime: there the number is the child's. */
static void in_a_child(void) {
    CHECK(signal(SIGURG, handler) == SIG_DFL);
    pid_t pid = fork();
    if (pid == 0) {
        struct sigaction now;
        bool same = sigaction(SIGURG, NULL, &now) == 0 && now.sa_handler == handler;
        bool was = signal(SIGURG, SIG_IGN) != SIG_ERR;
        bool gone =
            syscall(SYS_rt_sigaction, SIGURG, NULL, &now, 8) == 0 && now.sa_handler == SIG_IGN;
        _exit(same && was && gone ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    check_action(handler, SA_RESTART);
}

static int run(int argc, char **argv) {
    gort_maxprocs(1);
    by_signal();
    by_sigset();
    by_sigaction();
    everything_reset();
    in_a_child();
    return 0;
}

/* What it was at the end is installed then. */
int main(int argc, char **argv) {
    struct sigaction now;
    check_hooked();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_main(run, argc, argv), 0);
        CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
        CHECK(now.sa_handler == handler);
        int before = get(&handled);
        CHECK_EQ(raise(SIGURG), 0);
        CHECK_GE(get(&handled), before + 1);
        CHECK(signal(SIGURG, SIG_DFL) == handler);
    }
    return 0;
}
