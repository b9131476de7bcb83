/* Signals for the process: main's, while it takes them, whoever computes meanwhile: its handler may
 * jump back into main. Timers of CPU time: whoever runs. By number: the thread's. And the older
 * names of masks and flags. */
#include "threads_test.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { THREADS = 4, TIMES = 100 };
static int ending; /* atomic */
static pthread_t main_thread;
static sigjmp_buf back;
static volatile sig_atomic_t hits;
static __thread volatile sig_atomic_t own_hits;
static int elsewhere; /* atomic */

/* The kernel prefers main where it does not look busy; here it is main. */
static void jumps(int signo) {
    bool mains = pthread_equal(pthread_self(), main_thread);
    CHECK(mains || !as_goroutines());
    if (mains) siglongjmp(back, 1);
    pthread_kill(main_thread, signo);
}
static void counts(int signo) {
    hits = hits + 1;
    own_hits = own_hits + 1;
}
static void samples(int signo) {
    if (!pthread_equal(pthread_self(), main_thread))
        __atomic_add_fetch(&elsewhere, 1, __ATOMIC_SEQ_CST);
}

static void *computes(void *arg) {
    for (volatile long n = 0; !__atomic_load_n(&ending, __ATOMIC_SEQ_CST); n++) {}
    return NULL;
}

static void handle(int signo, void (*handler)(int), int flags) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(signo, &act, NULL) == 0);
}

/* A call with a time limit, as older programs have it. */
static void limits(void) {
    int pair[2];
    CHECK(pipe(pair) == 0);
    handle(SIGALRM, jumps, 0);
    for (volatile int i = 0; i < TIMES; i++) {
        struct itimerval timer = {{0, 0}, {0, 1000}};
        if (sigsetjmp(back, 1) != 0) continue;
        CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
        if (i % 3 == 0) read(pair[0], &(char){0}, 1);
        if (i % 3 == 1) sleep(1000);
        for (volatile long n = 0;; n++) {}
    }
}

/* main sleeps; the others use CPU time. */
static void profile(void) {
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    handle(SIGPROF, samples, SA_RESTART);
    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
    wait_until(__atomic_load_n(&elsewhere, __ATOMIC_SEQ_CST) >= 5);
    timer = (struct itimerval){{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

static int number;    /* atomic */
static int main_sent; /* atomic */
static void *numbered(void *arg) {
    pid_t own = gettid();
    CHECK(syscall(SYS_tgkill, getpid(), own, SIGUSR1) == 0 && own_hits == 1);
    CHECK(syscall(SYS_tkill, own, SIGUSR1) == 0 && own_hits == 2);
    __atomic_store_n(&number, own, __ATOMIC_SEQ_CST);
    wait_until(own_hits == 3);
    CHECK(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) == 0); /* main's number */
    __atomic_store_n(&main_sent, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void by_number(void) {
    pthread_t thread;
    handle(SIGUSR1, counts, SA_RESTART);
    own_hits = 0;
    CHECK(pthread_create(&thread, NULL, numbered, NULL) == 0);
    wait_until(__atomic_load_n(&number, __ATOMIC_SEQ_CST));
    CHECK(syscall(SYS_tgkill, getpid(), number, SIGUSR1) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && main_sent);
    wait_until(own_hits == 1);
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && own_hits == 2);
    errno = 0;
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), 1000) == -1 && errno == EINVAL);
}

static void comes_back(void) { /* perhaps on another kernel thread */
    for (int i = 0; i < 20; i++) usleep(100);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define OF_USR1 (1 << (SIGUSR1 - 1))
static void *older(void *arg) {
    own_hits = 0;
    CHECK(sighold(SIGUSR1) == 0);
    comes_back();
    raise(SIGUSR1);
    comes_back();
    CHECK(own_hits == 0 && sigrelse(SIGUSR1) == 0 && own_hits == 1);
    int was = sigblock(OF_USR1);
    CHECK((was & OF_USR1) == 0);
    comes_back();
    raise(SIGUSR1);
    CHECK(own_hits == 1);
    CHECK(sigsetmask(was) == (was | OF_USR1) && own_hits == 2);
    CHECK(sigset(SIGUSR1, SIG_HOLD) == counts);
    comes_back();
    raise(SIGUSR1);
    CHECK(own_hits == 2 && sigset(SIGUSR1, counts) == SIG_HOLD && own_hits == 3);
    CHECK(sighold(1000) == -1 && errno == EINVAL);
    return NULL;
}

static pthread_t reader;
static void *reads(void *arg) {
    int *pair = arg;
    return (void *)(intptr_t)(read(pair[0], &(char){0}, 1) < 0 && errno == EINTR);
}
static void flags(void) {
    int pair[2];
    void *ended;
    CHECK(pipe(pair) == 0);
    signal(SIGUSR2, counts); /* restarts */
    CHECK(siginterrupt(SIGUSR2, 1) == 0);
    hits = 0;
    CHECK(pthread_create(&reader, NULL, reads, pair) == 0);
    usleep(20000);
    while (pthread_tryjoin_np(reader, &ended) != 0) {
        pthread_kill(reader, SIGUSR2);
        usleep(1000);
    }
    CHECK(ended != NULL && siginterrupt(SIGUSR2, 0) == 0);
    hits = 0;
    CHECK(pthread_create(&reader, NULL, reads, pair) == 0);
    while (hits < 5) {
        pthread_kill(reader, SIGUSR2);
        usleep(1000);
    }
    CHECK(write(pair[1], "x", 1) == 1 && pthread_join(reader, &ended) == 0 && ended == NULL);
}

int main(void) {
    pthread_t threads[THREADS], thread;
    main_thread = pthread_self();
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, computes, NULL) == 0);
    limits();
    profile();
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    by_number();
    CHECK(pthread_create(&thread, NULL, older, NULL) == 0 && pthread_join(thread, NULL) == 0);
    flags();
    return 0;
}
