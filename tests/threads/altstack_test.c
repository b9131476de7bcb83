// not-with: valgrind (a handler that jumps out leaves it on the alternate stack)
/* Handlers run on the stack that the thread has asked for, and each thread has its own; one may
 * jump out, and the next one comes all the same. */
#include "threads_test.h"

#include <setjmp.h>
#include <signal.h>

enum { THREADS = 20, ROUNDS = 50, SIZE = 65536 };
static __thread char *alternate;   /* NULL: none */
static __thread volatile int hits; /* raise is told to call nothing here */
static __thread sigjmp_buf back;

static bool on_alternate(void) {
    char here;
    return alternate && (uintptr_t)&here - (uintptr_t)alternate < SIZE;
}

static void apart(int signo, siginfo_t *info, void *context) {
    stack_t now;
    CHECK(on_alternate() == (alternate != NULL));
    CHECK(sigaltstack(NULL, &now) == 0);
    if (alternate) {
        CHECK(now.ss_flags == SS_ONSTACK && now.ss_sp == alternate && now.ss_size == SIZE);
        CHECK(sigaltstack(&now, NULL) == -1 && errno == EPERM);
    }
    hits++;
    if (hits % 3 == 0) sched_yield();
    if (hits % 7 == 0) usleep(50);
    CHECK(on_alternate() == (alternate != NULL));
}
static void plain(int signo) {
    CHECK(!on_alternate());
    hits++;
}
static void jumps(int signo) {
    CHECK(on_alternate() == (alternate != NULL));
    hits++;
    siglongjmp(back, 1);
}

static void handle(int signo, void *fn, int flags) {
    struct sigaction act = {.sa_flags = flags}, now;
    *(void **)&act.sa_handler = fn;
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(signo, &act, NULL) == 0 && sigaction(signo, NULL, &now) == 0);
    CHECK(now.sa_handler == act.sa_handler && (now.sa_flags & ~0x04000000) == flags);
}

static void *life(void *arg) {
    stack_t stack = {.ss_size = SIZE}, now;
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE);
    if (arg) {
        stack.ss_sp = alternate = malloc(SIZE);
        CHECK(sigaltstack(&stack, NULL) == 0);
    }
    for (volatile int i = 0; i < ROUNDS; i++) {
        volatile int before = hits;
        CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
        CHECK(raise(SIGUSR2) == 0);
        CHECK(hits == before + 2);
        if (sigsetjmp(back, 1) == 0) raise(SIGHUP);
        CHECK(hits == before + 3 && !on_alternate());
        if (i % 5 == 0) usleep(20);
    }
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == stack.ss_sp);
    return NULL;
}

/* A fault in the program is a signal like others. */
static void *faults(void *arg) {
    alternate = NULL;
    for (volatile int i = 0; i < 10; i++)
        if (sigsetjmp(back, 1) == 0) *(volatile int *)arg = 1;
    CHECK(hits == 10);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    handle(SIGUSR1, apart, SA_SIGINFO | SA_ONSTACK);
    handle(SIGUSR2, plain, 0);
    handle(SIGHUP, jumps, SA_ONSTACK);
    handle(SIGSEGV, jumps, SA_ONSTACK);
    for (int round = 0; round < 3; round++) {
        for (intptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, life, (void *)(i % 2)) == 0);
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(pthread_create(&threads[0], NULL, faults, (void *)8) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    return 0;
}
