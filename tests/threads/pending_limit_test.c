/* Where the user has no room for signals that wait (ulimit -i), a signal for one thread comes to
 * that one, in its order, and a thread is cancelled; or the call says that it is not to be. */
#include "threads_test.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>

enum { TIMES = 20, VALUES = 5 };
static __thread volatile int got;
static volatile int strays, stop, last;
static __thread bool target;
static pthread_barrier_t begun;
static sem_t never;

static void on_signal(int signo, siginfo_t *info, void *context) {
    if (!target) strays = 1;
    if (info->si_code == SI_QUEUE) {
        if (info->si_value.sival_int != last + 1) strays = 1;
        last = info->si_value.sival_int;
    }
    got++;
}

static void *sleeps(void *arg) {
    target = true;
    pthread_barrier_wait(&begun);
    while (!stop) usleep(100);
    return (void *)(long)got;
}
static void *computes(void *arg) {
    target = true;
    pthread_barrier_wait(&begun);
    while (!stop) {}
    return (void *)(long)got;
}
static void *parked(void *arg) {
    pthread_barrier_wait(&begun);
    sem_wait(&never);
    return NULL;
}

/* Queued one by one, then let in. */
static void *opens(void *arg) {
    sigset_t set;
    int signo = SIGRTMIN + 1;
    target = true;
    sigemptyset(&set);
    sigaddset(&set, signo);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    for (int i = 1; i <= VALUES; i++)
        CHECK(pthread_sigqueue(pthread_self(), signo, (union sigval){.sival_int = i}) == 0);
    CHECK(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){0, 0}) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    CHECK(got == VALUES && last == VALUES);
    return NULL;
}

static int sent_to(pthread_t id, int signo) {
    int sent = 0;
    for (int i = 0; i < TIMES; i++) {
        int r = pthread_kill(id, signo);
        CHECK(r == 0 || r == EAGAIN);
        sent += r == 0;
        usleep(1000);
    }
    return sent;
}

int main(void) {
    void *(*const kinds[])(void *) = {sleeps, computes, parked};
    const int signos[] = {SIGUSR1, SIGRTMIN + 2};
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t threads[3], opener;
    int sent[2] = {0};
    void *value;
    for (int signo = SIGRTMIN + 1; signo <= SIGRTMIN + 2; signo++)
        CHECK(sigaction(signo, &act, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    sem_init(&never, 0, 0);
    CHECK(pthread_create(&opener, NULL, opens, NULL) == 0);
    CHECK(pthread_join(opener, NULL) == 0);
    pthread_barrier_init(&begun, NULL, 4);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, kinds[i], NULL) == 0);
    pthread_barrier_wait(&begun);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < 2; i++) sent[i] += sent_to(threads[i], signos[s]);
    if (as_goroutines()) CHECK(pthread_cancel(threads[2]) == 0); /* glibc's would hang */
    else sem_post(&never);
    CHECK(pthread_join(threads[2], &value) == 0);
    CHECK(value == (as_goroutines() ? PTHREAD_CANCELED : NULL));
    stop = 1;
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], &value) == 0);
        CHECK((long)value > 0 && (long)value <= sent[i]); /* one that waits takes others in */
    }
    CHECK(!strays);
    return 0;
}
