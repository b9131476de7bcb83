/* Collectors stop the other threads by a signal, whose handler waits for another signal, or for the
 * end of the stop: also those that are in a call which blocks their kernel thread. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 10, STOP = SIGUSR1, GO = SIGUSR2 };
static sem_t stopped;
static int gone; /* atomic: handlers that have gone on */
static int way;

static void by_sigsuspend(void) {
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, GO);
    CHECK(sigsuspend(&set) == -1 && errno == EINTR);
}
static void by_sigwait(void) {
    sigset_t set;
    int signo;
    sigemptyset(&set);
    sigaddset(&set, GO);
    CHECK(sigwait(&set, &signo) == 0 && signo == GO);
}
static void by_sigtimedwait(void) {
    struct timespec soon = {0, 1000000}, late = {1000, 0};
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    CHECK(sigtimedwait(&set, &info, &soon) == -1 && errno == EAGAIN);
    sigaddset(&set, GO);
    CHECK(sigtimedwait(&set, &info, &late) == GO && info.si_signo == GO);
}
static void (*const ways[])(void) = {by_sigsuspend, by_sigwait, by_sigtimedwait};

static void on_stop(int signo) {
    int err = errno;
    sem_post(&stopped);
    ways[way]();
    __atomic_add_fetch(&gone, 1, __ATOMIC_SEQ_CST);
    errno = err;
}
static void on_go(int signo) {}

static int ends[2], begun; /* atomic */
static void *in_kernel(void *arg) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char c;
        close(ends[1]);
        if (read(ends[0], &c, 1) < 0) _exit(1);
        _exit(0);
    }
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    CHECK(waitpid(-1, NULL, 0) == child);
    return NULL;
}
static int computes; /* atomic */
static void *in_code(void *arg) {
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&computes, __ATOMIC_SEQ_CST)) {}
    return NULL;
}
static sem_t waits;
static void *in_wait(void *arg) {
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    while (sem_wait(&waits) != 0) CHECK(errno == EINTR);
    return NULL;
}

static void stop_and_go(pthread_t thread) {
    for (int i = 0; i < ROUNDS; i++) {
        int before = __atomic_load_n(&gone, __ATOMIC_SEQ_CST);
        CHECK(pthread_kill(thread, STOP) == 0);
        while (sem_wait(&stopped) != 0) CHECK(errno == EINTR);
        if (i % 2) usleep(2000); /* it waits by then, as a rule */
        CHECK(pthread_kill(thread, GO) == 0);
        wait_until(__atomic_load_n(&gone, __ATOMIC_SEQ_CST) > before);
    }
}

static pthread_t begin(void *(*fn)(void *)) {
    pthread_t thread;
    begun = 0;
    CHECK(pthread_create(&thread, NULL, fn, NULL) == 0);
    wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
    return thread;
}

int main(void) {
    struct sigaction act = {.sa_flags = SA_RESTART};
    sem_init(&stopped, 0, 0);
    sem_init(&waits, 0, 0);
    sigemptyset(&act.sa_mask);
    act.sa_handler = on_go;
    CHECK(sigaction(GO, &act, NULL) == 0);
    sigaddset(&act.sa_mask, GO);
    act.sa_handler = on_stop;
    CHECK(sigaction(STOP, &act, NULL) == 0);
    for (way = 0; way < (int)(sizeof ways / sizeof ways[0]); way++) {
        CHECK(pipe(ends) == 0);
        pthread_t thread = begin(in_kernel);
        stop_and_go(thread);
        close(ends[0]);
        close(ends[1]);
        CHECK(pthread_join(thread, NULL) == 0);
        computes = 1;
        thread = begin(in_code);
        stop_and_go(thread);
        __atomic_store_n(&computes, 0, __ATOMIC_SEQ_CST);
        CHECK(pthread_join(thread, NULL) == 0);
        thread = begin(in_wait);
        stop_and_go(thread);
        sem_post(&waits);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return 0;
}
