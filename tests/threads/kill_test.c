/* Signals reach the thread that they are for, wherever it is: it computes, waits for a lock,
 * sleeps, is in the kernel. Those of a queued kind all come, each with its value; to the process,
 * one. */
#include "threads_test.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

enum { THREADS = 24, EACH = 200 };
static pthread_t threads[THREADS];
static long got[THREADS], sum[THREADS]; /* each thread's own */
static __thread int number = -1;
static int process_hits, alarms; /* atomic */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ending; /* atomic */
static sem_t ready;

static void counted(int signo, siginfo_t *info, void *context) {
    int err = errno;
    CHECK(number >= 0 && pthread_equal(pthread_self(), threads[number]));
    CHECK(info->si_code == SI_QUEUE && info->si_pid == getpid());
    got[number]++;
    sum[number] += info->si_value.sival_int;
    errno = err;
}
static void on_process(int signo) { __atomic_add_fetch(&process_hits, 1, __ATOMIC_SEQ_CST); }
static void on_alarm(int signo) { __atomic_add_fetch(&alarms, 1, __ATOMIC_SEQ_CST); }

static void live(int how) {
    static volatile long work;
    switch (how % 6) {
    case 0:
        for (int i = 0; i < 1000; i++) work++;
        break;
    case 1:
        pthread_mutex_lock(&mutex);
        usleep(50);
        pthread_mutex_unlock(&mutex);
        break;
    case 2: usleep(100); break;
    case 3: poll(NULL, 0, 1); break;
    case 4: sched_yield(); break;
    case 5: free(malloc(100)); break;
    }
}

static void *life(void *arg) {
    number = (int)(intptr_t)arg;
    sem_post(&ready);
    while (!__atomic_load_n(&ending, __ATOMIC_SEQ_CST) ||
           *(volatile long *)&got[number] < EACH * (long)THREADS)
        live(number);
    return NULL;
}

/* To each other, in turn; a full queue is tried again. */
static void *sender(void *arg) {
    for (int i = 0; i < EACH; i++)
        for (int to = 0; to < THREADS; to++) {
            union sigval value = {.sival_int = i};
            int r;
            while ((r = pthread_sigqueue(threads[to], SIGRTMIN + i % 3, value)) == EAGAIN)
                usleep(100);
            CHECK(r == 0);
        }
    return NULL;
}

static void handle(int signo, void (*handler)(int), int flags) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    sigfillset(&act.sa_mask);
    CHECK(sigaction(signo, &act, NULL) == 0);
}

/* All of them are parked: the process's signals still come. */
static void *parked(void *arg) {
    sem_t *never = arg;
    while (sem_wait(never) != 0) CHECK(errno == EINTR);
    return NULL;
}

static void to_the_process(void) {
    sem_t never;
    sigset_t set;
    pthread_t some[4];
    sem_init(&never, 0, 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&some[i], NULL, parked, &never) == 0);
    handle(SIGUSR1, on_process, 0);
    handle(SIGALRM, on_alarm, 0);
    for (int i = 0; i < 20; i++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
        wait_until(__atomic_load_n(&process_hits, __ATOMIC_SEQ_CST) == i + 1);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* now the parked ones only */
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    wait_until(__atomic_load_n(&alarms, __ATOMIC_SEQ_CST) >= 10);
    timer = (struct itimerval){{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
        wait_until(__atomic_load_n(&process_hits, __ATOMIC_SEQ_CST) == 21 + i);
    }
    for (int i = 0; i < 4; i++) sem_post(&never);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(some[i], NULL) == 0);
}

int main(void) {
    pthread_t senders[THREADS];
    struct sigaction act = {.sa_sigaction = counted, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&act.sa_mask);
    for (int i = 0; i < 3; i++) CHECK(sigaction(SIGRTMIN + i, &act, NULL) == 0);
    sem_init(&ready, 0, 0);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, life, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        while (sem_wait(&ready) != 0) CHECK(errno == EINTR);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&senders[i], NULL, sender, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(senders[i], NULL) == 0);
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(got[i] == (long)EACH * THREADS);
        CHECK(sum[i] == (long)THREADS * EACH * (EACH - 1) / 2);
    }
    CHECK(pthread_kill(pthread_self(), 0) == 0 && pthread_kill(pthread_self(), 1000) == EINVAL);
    to_the_process();
    CHECK(tgkill(getpid(), gettid(), 0) == 0);
    return 0;
}
