/* Timers that are for one thread: their signals come to that one, to its handler or its sigwait,
 * blocked by the others or not, and to nobody once it has ended. And timers by a thread's CPU
 * time. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
enum { THREADS = 6, TIMES = 10, SIGNO = 35 };
static __thread int got;
static __thread int mine; /* what its timer's signals say */
static __thread timer_t own;
static sem_t end;
static volatile int strays;

static void on_timer(int signo, siginfo_t *info, void *context) {
    if (info->si_overrun != timer_getoverrun(own)) strays = 1;
    if (info->si_code != SI_TIMER || info->si_value.sival_int != mine) strays = 1;
    got++;
}

static timer_t timer_of(clockid_t clock, int tid, int signo) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signo};
    struct itimerspec each = {{0, 500000}, {0, 500000}};
    event.sigev_notify_thread_id = tid;
    event.sigev_value.sival_int = mine = tid;
    CHECK(timer_create(clock, &event, &timer) == 0);
    own = timer;
    CHECK(timer_settime(timer, 0, &each, NULL) == 0);
    return timer;
}

static void *parked(void *arg) {
    timer_t timer = timer_of(CLOCK_MONOTONIC, gettid(), SIGNO);
    while (got < TIMES)
        while (sem_wait(&end) != 0) CHECK(errno == EINTR && !strays);
    return NULL;
    (void)timer;
}
static void *sleeps(void *arg) {
    timer_t timer = timer_of(CLOCK_REALTIME, gettid(), SIGNO);
    while (got < TIMES) usleep(1000);
    CHECK(timer_delete(timer) == 0);
    return NULL;
}
static void *computes(void *arg) {
    timer_t timer = timer_of(CLOCK_THREAD_CPUTIME_ID, gettid(), SIGNO);
    while (*(volatile int *)&got < TIMES) {}
    CHECK(timer_delete(timer) == 0);
    return NULL;
}
static void *takes(void *arg) {
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGNO);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    timer_t timer = timer_of(CLOCK_MONOTONIC, gettid(), SIGNO);
    for (int i = 0; i < TIMES; i++) {
        CHECK(sigwaitinfo(&set, &info) == SIGNO && info.si_code == SI_TIMER);
        CHECK(info.si_value.sival_int == mine);
    }
    usleep(5000); /* there is one more, and its overrun */
    CHECK(sigwaitinfo(&set, &info) == SIGNO && info.si_overrun > 0);
    CHECK(timer_getoverrun(timer) == info.si_overrun);
    usleep(5000); /* and one that nobody takes */
    CHECK(timer_delete(timer) == 0);
    return NULL;
}

int main(void) {
    void *(*const kinds[])(void *) = {sleeps, computes, takes, parked};
    pthread_t threads[4][THREADS];
    struct sigaction act = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGNO, &act, NULL) == 0);
    sem_init(&end, 0, 0);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[k][i], NULL, kinds[k], NULL) == 0);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[k][i], NULL) == 0);
    for (int left = THREADS; left > 0;) {
        sem_post(&end); /* whoever has enough */
        for (int i = 0; i < THREADS; i++)
            if (threads[3][i] && pthread_tryjoin_np(threads[3][i], NULL) == 0)
                threads[3][i] = 0, left--;
        usleep(1000);
    }
    usleep(5000); /* their timers go on, for nobody */
    CHECK(!strays && got == 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNO};
    timer_t timer;
    event.sigev_notify_thread_id = 1; /* none of the process */
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == -1 && errno == EINVAL);
    return 0;
}
