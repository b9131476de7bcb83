/* Masks are the thread's own: inherited, kept over waits, right in handlers and behind a jump out
 * of one; what every thread blocks stays pending, and does not end the program. */
#include "threads_test.h"

#include <setjmp.h>
#include <signal.h>

enum { THREADS = 40, ROUNDS = 200 };
static volatile int hits[NSIG];    /* atomic */
static __thread volatile int mine; /* raise is told to call nothing here */
static sigjmp_buf back;

static bool blocks(int signo) {
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    return sigismember(&now, signo);
}
static void change(int how, int signo) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    CHECK(sigprocmask(how, &set, NULL) == 0);
}

static void count(int signo) {
    __atomic_add_fetch(&hits[signo], 1, __ATOMIC_SEQ_CST);
    mine++;
}

/* Each has its own, whatever kernel thread it goes on with. */
static void *own_mask(void *arg) {
    int number = (int)(intptr_t)arg, other = SIGRTMIN + number % 10;
    CHECK(blocks(SIGUSR2) && !blocks(other));
    change(SIG_BLOCK, other);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 20 == 0) usleep(100);
        else sched_yield();
        for (int s = SIGRTMIN; s < SIGRTMIN + 10; s++) CHECK(blocks(s) == (s == other));
        if (i % 10 != 0) continue;
        raise(other);
        CHECK(mine == i / 10);
        change(SIG_UNBLOCK, other);
        CHECK(mine == i / 10 + 1);
        change(SIG_BLOCK, other);
    }
    return NULL;
}

static void in_handler(int signo) {
    CHECK(blocks(signo) && blocks(SIGUSR2) == (signo == SIGUSR1));
    if (signo == SIGHUP) siglongjmp(back, 1);
    usleep(1000); /* a handler may wait */
    CHECK(blocks(signo));
}

static void handlers(void) {
    struct sigaction act = {.sa_handler = in_handler};
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(SIGHUP, &act, NULL) == 0);
    sigaddset(&act.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    change(SIG_UNBLOCK, SIGUSR2);
    CHECK(raise(SIGUSR1) == 0 && !blocks(SIGUSR1) && !blocks(SIGUSR2));
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) CHECK(raise(SIGHUP) != 0);
        CHECK(!blocks(SIGHUP));
    }
    act.sa_handler = count;
    act.sa_flags = SA_RESETHAND;
    CHECK(sigaction(SIGHUP, &act, NULL) == 0 && raise(SIGHUP) == 0);
    CHECK(hits[SIGHUP] == 1 && sigaction(SIGHUP, NULL, &act) == 0 && act.sa_handler == SIG_DFL);
}

/* All names of one jump. */
void jump_checked(jmp_buf env, int value) __asm__("__longjmp_chk") __attribute__((noreturn));
static void jump_by_each(void) {
    for (volatile int i = 0; i < 3; i++) {
        int value = setjmp(back);
        if (value == 0 && i == 0) longjmp(back, 1);
        if (value == 0 && i == 1) _longjmp(back, 2);
        if (value == 0 && i == 2) jump_checked(back, 3); /* __longjmp_chk */
        CHECK(value == i + 1);
    }
}

static void *idle(void *arg) {
    for (int i = 0; i < 50; i++) usleep(200);
    return NULL;
}

/* SIGTERM, whose default is the program's end. */
static void blocked_by_all(void) {
    pthread_t threads[THREADS];
    sigset_t pending;
    struct sigaction act = {.sa_handler = count};
    sigemptyset(&act.sa_mask);
    change(SIG_BLOCK, SIGTERM);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, idle, NULL) == 0);
    for (int i = 0; i < 5; i++) CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGTERM));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sigaction(SIGTERM, &act, NULL) == 0);
    change(SIG_UNBLOCK, SIGTERM);
    CHECK(hits[SIGTERM] == 1);
    for (int i = 0; i < 300; i++) { /* blocked by all, and again not */
        CHECK(kill(getpid(), SIGTERM) == 0 && hits[SIGTERM] == 2 + i);
        act.sa_handler = SIG_DFL;
        change(SIG_BLOCK, SIGTERM);
        CHECK(sigaction(SIGTERM, &act, NULL) == 0 && kill(getpid(), SIGTERM) == 0);
        act.sa_handler = SIG_IGN;
        CHECK(sigaction(SIGTERM, &act, NULL) == 0); /* and it is gone */
        act.sa_handler = count;
        CHECK(sigaction(SIGTERM, &act, NULL) == 0);
        change(SIG_UNBLOCK, SIGTERM);
    }
}

int main(void) {
    pthread_t threads[THREADS];
    struct sigaction act = {.sa_handler = count};
    sigemptyset(&act.sa_mask);
    for (int i = 0; i < 10; i++) CHECK(sigaction(SIGRTMIN + i, &act, NULL) == 0);
    CHECK(!blocks(SIGUSR2));
    change(SIG_BLOCK, SIGUSR2);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, own_mask, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    if (!in_valgrind()) blocked_by_all(); /* it takes no mask from the frame of a handler */
    handlers();
    jump_by_each();
    return 0;
}
