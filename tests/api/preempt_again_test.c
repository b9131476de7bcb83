/* A goroutine that blocks the preemption signal outlives its runtime, and the runtime's handler
 * with it. The program sets a handler of its own then: the next runtime preempts all the same,
 * and the program's handler is there again after it. */
#include "../lib/test.h"
#include <signal.h>
#include <unistd.h>

static int deaf;
static volatile int flag;

static void sleeps_deaf(void *arg) {
    sigset_t urgent;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    pthread_sigmask(SIG_BLOCK, &urgent, NULL);
    set(&deaf, 1);
    for (;;) pause();
}
static int leaves_one(int argc, char **argv) {
    CHECK_EQ(gort_go(sleeps_deaf, NULL), 0);
    wait_until(get(&deaf));
    return 0;
}

static void raises_flag(void *arg) { flag = 1; }
static int computes(int argc, char **argv) {
    gort_maxprocs(1);
    CHECK_EQ(gort_go(raises_flag, NULL), 0);
    while (!flag) continue;
    return 7;
}

static void mine(int signo) {}

int main(int argc, char **argv) {
    if (test_simulated()) SKIP("a simulation preempts nobody");
#ifdef __SANITIZE_THREAD__
    SKIP("TSan holds signals back until the next call");
#endif
    struct sigaction own = {.sa_handler = mine}, now;
    CHECK_EQ(gort_main(leaves_one, argc, argv), 0);
    CHECK_EQ(sigaction(SIGURG, &own, NULL), 0);
    alarm(60); /* it would compute for ever */
    CHECK_EQ(gort_main(computes, argc, argv), 7);
    CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
    CHECK(now.sa_handler == mine);
    _exit(0);
}
