/* sigwait and its like: signals to the thread and to the process, which all block; with a time;
 * ended by a handler. sigsuspend lets a signal in, and none is lost between the mask and the wait.
 * What they say of the sender is what libc says. */
#include "threads_test.h"

#include <signal.h>

enum { THREADS = 8, EACH = 100 };
static long sums[THREADS];
static int handled; /* atomic */

static void on_signal(int signo) { __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST); }

static void set_of(sigset_t *set, int a, int b) {
    sigemptyset(set);
    sigaddset(set, a);
    sigaddset(set, b);
}

static void *waits(void *arg) {
    int number = (int)(intptr_t)arg;
    sigset_t set;
    siginfo_t info;
    set_of(&set, SIGRTMIN, SIGTERM);
    for (;;) {
        int signo = sigwaitinfo(&set, &info);
        if (signo < 0 && errno == EINTR) continue; /* another took it */
        CHECK(signo == SIGRTMIN || signo == SIGTERM);
        if (signo == SIGTERM) return NULL;
        CHECK(info.si_code == SI_QUEUE && info.si_signo == SIGRTMIN);
        sums[number] += info.si_value.sival_int;
    }
}

/* A server's: one thread takes the signals that all block. */
static void *server(void *arg) {
    sigset_t set;
    int signo, *got = arg;
    set_of(&set, SIGUSR1, SIGCHLD);
    for (int i = 0; i < EACH; i++) {
        CHECK(sigwait(&set, &signo) == 0 && signo == SIGUSR1);
        __atomic_add_fetch(got, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void *suspends(void *arg) {
    sigset_t open;
    sigemptyset(&open);
    for (int i = 0; i < EACH; i++) {
        int before = handled;
        CHECK(sigsuspend(&open) == -1 && errno == EINTR);
        CHECK(__atomic_load_n(&handled, __ATOMIC_SEQ_CST) > before);
        __atomic_store_n((int *)arg, i + 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void *interrupted(void *arg) {
    sigset_t set, one;
    siginfo_t info;
    set_of(&set, SIGRTMIN, SIGTERM);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
    __atomic_store_n((int *)arg, 1, __ATOMIC_SEQ_CST);
    CHECK(sigwaitinfo(&set, &info) == -1 && errno == EINTR);
    __atomic_store_n((int *)arg, 2, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS], one;
    sigset_t all, set;
    siginfo_t info;
    struct sigaction act = {.sa_handler = on_signal};
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(SIGUSR2, &act, NULL) == 0);
    sigfillset(&all);
    sigdelset(&all, SIGABRT);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);

    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, waits, (void *)i) == 0);
    for (int i = 1; i <= EACH; i++)
        for (int k = 0; k < THREADS; k++) {
            union sigval value = {.sival_int = i};
            CHECK(pthread_sigqueue(threads[k], SIGRTMIN, value) == 0);
        }
    for (int k = 0; k < THREADS; k++) CHECK(pthread_kill(threads[k], SIGTERM) == 0);
    for (int k = 0; k < THREADS; k++) CHECK(pthread_join(threads[k], NULL) == 0);
    long sum = 0;
    for (int k = 0; k < THREADS; k++) sum += sums[k];
    for (int k = 0; k < THREADS; k++) CHECK(sums[k] <= EACH * (EACH + 1) / 2);
    /* the lower number comes first, so what was left when SIGTERM came is pending no more */
    CHECK(sum <= (long)THREADS * EACH * (EACH + 1) / 2);

    /* queued ones to the process: each to one of them */
    memset(sums, 0, sizeof sums);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, waits, (void *)i) == 0);
    for (int i = 1; i <= EACH; i++) {
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), SIGRTMIN, value) == 0);
    }
    do {
        usleep(1000);
        sum = 0;
        for (int k = 0; k < THREADS; k++) sum += *(volatile long *)&sums[k];
    } while (sum < EACH * (EACH + 1) / 2);
    CHECK(sum == EACH * (EACH + 1) / 2);
    for (int k = 0; k < THREADS; k++) CHECK(pthread_kill(threads[k], SIGTERM) == 0);
    for (int k = 0; k < THREADS; k++) CHECK(pthread_join(threads[k], NULL) == 0);

    int got = 0;
    CHECK(pthread_create(&one, NULL, server, &got) == 0);
    for (int i = 0; i < EACH; i++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
        wait_until(__atomic_load_n(&got, __ATOMIC_SEQ_CST) == i + 1);
    }
    CHECK(pthread_join(one, NULL) == 0);

    int done = 0;
    CHECK(pthread_create(&one, NULL, suspends, &done) == 0);
    for (int i = 0; i < EACH; i++) {
        CHECK(pthread_kill(one, SIGUSR2) == 0);
        wait_until(__atomic_load_n(&done, __ATOMIC_SEQ_CST) == i + 1);
    }
    CHECK(pthread_join(one, NULL) == 0);

    int state = 0;
    CHECK(pthread_create(&one, NULL, interrupted, &state) == 0);
    wait_until(__atomic_load_n(&state, __ATOMIC_SEQ_CST) == 1);
    while (__atomic_load_n(&state, __ATOMIC_SEQ_CST) == 1) {
        CHECK(pthread_kill(one, SIGUSR2) == 0);
        usleep(1000);
    }
    CHECK(pthread_join(one, NULL) == 0);

    struct timespec soon = {0, 20000000}, none = {0, 0};
    set_of(&set, SIGUSR1, SIGHUP); /* sent by pthread_kill: glibc says it like kill's */
    CHECK(pthread_kill(pthread_self(), SIGHUP) == 0);
    CHECK(sigwaitinfo(&set, &info) == SIGHUP && info.si_code == SI_USER);
    CHECK(pthread_kill(pthread_self(), SIGHUP) == 0);
    CHECK(sigtimedwait(&set, &info, &soon) == SIGHUP && info.si_code == SI_USER);
    set_of(&set, SIGRTMIN + 1, SIGHUP);
    CHECK(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
    CHECK(sigtimedwait(&set, &info, &soon) == -1 && errno == EAGAIN);
    CHECK(kill(getpid(), SIGHUP) == 0 && raise(SIGRTMIN + 1) == 0);
    CHECK(sigpending(&all) == 0 && sigismember(&all, SIGHUP) && sigismember(&all, SIGRTMIN + 1));
    int first = sigtimedwait(&set, &info, &soon), second = sigtimedwait(&set, &info, &none);
    CHECK(first + second == SIGHUP + SIGRTMIN + 1);
    CHECK(sigpending(&all) == 0 && !sigismember(&all, SIGHUP));
    return 0;
}
