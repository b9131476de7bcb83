/*
 * A handler without SA_ONSTACK that waits returns on the thread that it has interrupted: every
 * thread keeps the alternate stack and the signal mask that it had, while goroutines move at every
 * switch. The program sees its handlers with the flags that it gave.
 */
#include "hook.h"
#include <semaphore.h>
#include <time.h>

enum { WORKERS = 8, THREADS = 4096 };
static int stop, handled, returned, checked, kind;
static sem_t permits;

static void wait_somehow(void) {
    struct timespec us = {0, 20000};
    struct pollfd p = {.fd = -1};
    switch (get(&kind)) {
    case 0: nanosleep(&us, NULL); break;
    case 1: poll(&p, 1, 1); break;
    case 2: sem_wait(&permits); break;
    default: usleep(10); break;
    }
}

static void handler(int signo) {
    int err = errno;
    wait_somehow();
    add(&handled, 1);
    errno = err;
}

static void *stacks[THREADS]; /* by the number of its thread */

static void check_thread(void) {
    stack_t ss;
    sigset_t mask;
    gort_pin(); /* or these are of two threads */
    int tid = (int)syscall(SYS_gettid) % THREADS;
    syscall(SYS_sigaltstack, NULL, &ss); /* the hook's answers for the program */
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    gort_unpin();
    void *was = NULL;
    if (!__atomic_compare_exchange_n(&stacks[tid], &was, ss.ss_sp, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        CHECK_EQ((intptr_t)ss.ss_sp, (intptr_t)was);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(i != tid && get(&stacks[i]) == ss.ss_sp, 0);
    CHECK_EQ(sigismember(&mask, SIGUSR1), 0);
    add(&checked, 1);
}

static void worker(void *arg) {
    while (!get(&stop)) {
        syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGUSR1);
        add(&returned, 1);
        sem_post(&permits);
        check_thread();
        gort_yield();
    }
}

static void flags(void) {
    struct sigaction sa, old;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
    CHECK_EQ(sa.sa_flags & (SA_ONSTACK | SA_RESTART), SA_RESTART);
    CHECK(signal(SIGUSR2, handler) == SIG_DFL);
    CHECK_EQ(sigaction(SIGUSR2, NULL, &sa), 0);
    CHECK_EQ(sa.sa_flags & SA_ONSTACK, 0);
    CHECK(sa.sa_handler == handler);
    sa.sa_flags |= SA_ONSTACK;
    CHECK_EQ(sigaction(SIGUSR2, &sa, &old), 0);
    CHECK_EQ(old.sa_flags & SA_ONSTACK, 0);
    CHECK_EQ(sigaction(SIGUSR2, NULL, &sa), 0);
    CHECK_EQ(sa.sa_flags & SA_ONSTACK, SA_ONSTACK);
    CHECK(signal(SIGUSR2, SIG_IGN) == handler);
    CHECK(__sysv_signal(SIGUSR2, handler) == SIG_IGN);
    CHECK_EQ(sigaction(SIGUSR2, NULL, &sa), 0);
    CHECK_EQ(sa.sa_flags & SA_ONSTACK, 0);
    CHECK(sa.sa_handler == handler);
    CHECK(signal(SIGUSR2, SIG_DFL) == handler);
    CHECK_FAILS(sigaction(-1, &sa, NULL), EINVAL);
    CHECK(signal(4000, handler) == SIG_ERR);
}

static int run(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    flags();
    CHECK_EQ(sem_init(&permits, 0, WORKERS), 0);
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(gort_go(worker, NULL), 0);
    for (int i = 0; i < 4; i++) {
        int before = get(&handled);
        set(&kind, i);
        wait_until(get(&handled) - before > 200);
    }
    set(&stop, 1);
    for (int i = 0; i < WORKERS; i++) sem_post(&permits);
    wait_until(gort_count() == 1);
    CHECK_LT(0, get(&checked));
    return 0;
}

int main(int argc, char **argv) {
    setenv("GORT_DEBUG", "migrate=1", 1);
    check_hooked();
    return gort_main(run, argc, argv);
}
