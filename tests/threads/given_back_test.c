/* Signals for the process that come at once: a thread that is to take them all takes the first, and
 * then no more, in its handler or since it waits no longer. The others are for another thread. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>

enum { ROUNDS = 50 };
static sem_t began, taken, second;
static sigset_t both;

static void *takes_one(void *arg) {
    int signo;
    sem_post(&began);
    CHECK(sigwait(&both, &signo) == 0 && (signo == SIGUSR1 || signo == SIGUSR2));
    sem_post(&taken);
    CHECK(sem_wait(&second) == 0);
    return (void *)(intptr_t)signo;
}

static void waited_for(void) {
    pthread_t thread;
    void *first;
    int signo;
    CHECK(pthread_create(&thread, NULL, takes_one, NULL) == 0);
    CHECK(sem_wait(&began) == 0);
    sched_yield();
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    CHECK(sem_wait(&taken) == 0);
    CHECK(sigwait(&both, &signo) == 0);
    sem_post(&second);
    CHECK(pthread_join(thread, &first) == 0);
    CHECK((int)(intptr_t)first + signo == SIGUSR1 + SIGUSR2);
}

static void on_first(int signo) {
    sem_post(&taken);
    while (sem_wait(&second) != 0) {}
}
static void on_second(int signo) { sem_post(&second); }

static void *open_to_both(void *arg) {
    CHECK(pthread_sigmask(SIG_UNBLOCK, &both, NULL) == 0);
    sem_post(&began);
    while (sem_wait(arg) != 0) {}
    return NULL;
}

static void handled(void) {
    static sem_t end;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, open_to_both, &end) == 0);
        CHECK(sem_wait(&began) == 0);
    }
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    CHECK(sem_wait(&taken) == 0); /* its handler ends when that of the other signal has run */
    for (int i = 0; i < 2; i++) sem_post(&end);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    struct sigaction first = {.sa_handler = on_first}, other = {.sa_handler = on_second};
    alarm(120);
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    first.sa_mask = both;
    CHECK(sigaction(SIGUSR1, &first, NULL) == 0 && sigaction(SIGUSR2, &other, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &both, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) waited_for();
    for (int i = 0; i < ROUNDS; i++) handled();
    return 0;
}
